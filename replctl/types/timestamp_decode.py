"""Decode the fields of a date or timestamp literal by the rules of PostgreSQL's DecodeDateTime() in
datetime.c.
"""

from __future__ import annotations

import re

from replctl.types.datetime_decode import (
    DATE,
    DAY,
    DST,
    ERA,
    MERIDIAN,
    MONTH,
    TIME,
    WEEKDAY,
    ZONE,
    Decoder,
)
from replctl.types.datetime_field import (
    WORD_LENGTH,
    WORDS,
    BadFormat,
    Field,
    Kind,
    UnknownZone,
)


class TimestampDecoder(Decoder):
    """Decodes a literal of date, timestamp or timestamptz."""

    def decode(self) -> None:
        """Set the attributes.

        Raises:
            DatetimeFault: the fields are not a date.
        """
        for field in self._fields:
            self._add(self._take(field))
        if self._label:
            raise BadFormat
        if self.special:
            return
        self._check_date()
        self.clock.apply_meridian()
        if self._found & DATE != DATE:
            raise BadFormat
        if self._found & DST and (self.zone.named is not None or not self._found & ZONE):
            raise BadFormat
        if self.zone.named is not None:
            self.zone.seconds_west = self._zone_offset(self.zone.named)
        elif not self._found & ZONE:
            self.zone.seconds_west = self._zone_offset(self._format.time_zone)

    def _take(self, field: Field) -> int:
        text = field.text
        match field.kind:
            case Kind.DATE:
                return self._take_date(text)
            case Kind.TIME:
                self._take_time_label()
                self.clock.read(text)
                self.clock.check()
                return TIME
            case Kind.ZONE:
                return self.zone.read_offset(text)
            case Kind.NUMBER:
                return self._set_labelled(text) if self._label else self._take_number(text)
            case Kind.WORD | Kind.SPECIAL:
                return self._take_word(text)

    def _take_date(self, text: str) -> int:
        if self._label == "julian":
            # With a zone.  In other literals the number is a separate field.
            self._label = ""
            match = re.match(r"\d*", text, re.ASCII)
            assert match is not None  # the pattern also matches an empty text
            self._set_julian(match[0])
            self._set_offset_at_end(text[match.end() :])
            return DATE | TIME | ZONE
        if not self._label and self._found & (MONTH | DAY) != MONTH | DAY:
            return self._set_date(text)
        # After a date, this is the name of a zone, or hhmmss-zz.
        if not text[0].isdigit() and not self._label:
            return self.zone.read_name(text, UnknownZone(text))
        self._take_time_label()
        if self._found & TIME:
            raise BadFormat
        return self._set_clock_with_offset(text, self._found)

    def _set_offset_at_end(self, text: str) -> None:
        if text[:1] not in ("+", "-"):
            raise BadFormat
        self.zone.read_offset(text)

    def _take_number(self, text: str) -> int:
        has_point = "." in text
        if has_point and not self._found & DATE:
            return self._set_date(text)
        if has_point and text.index(".") > 2:
            return self._set_run_together(text, self._found)
        if len(text) >= 6 and (not self._found & DATE or not self._found & TIME):
            return self._set_run_together(text, self._found)
        return self._set_number(text, self._found, self._has_month_name)

    def _take_word(self, word: str) -> int:
        zone_parts = self.zone.read_abbreviation(word)
        if zone_parts is not None:
            return zone_parts
        meaning, value = WORDS.get(word[:WORD_LENGTH], ("", ""))
        match meaning:
            case "ignored":
                return 0
            case "reserved":
                return self._take_reserved(str(value))
            case "month":
                assert isinstance(value, int)
                return self._set_month(value)
            case "meridian":
                self.clock.meridian = str(value)
                return MERIDIAN
            case "era":
                self._is_bc = value == "bc"
                return ERA
            case "weekday":
                return WEEKDAY
            case "dst":
                return self.zone.add_dst()
            case "unit":
                return self._set_label(str(value))
            case "time":
                if self._found & DATE != DATE:
                    raise BadFormat
                return self._set_label("time")
        return self.zone.read_name(word, BadFormat())

    def _set_month(self, month: int) -> int:
        parts = MONTH
        if (
            self._found & (MONTH | DAY) == MONTH
            and not self._has_month_name
            and 1 <= self.month <= 31
        ):
            self.day = self.month  # `8 January`: the number taken for the month is the day
            parts = DAY
        self._has_month_name = True
        self.month = month
        return parts

    def _take_reserved(self, word: str) -> int:
        match word:
            case "now":
                self._set_now()
                return DATE | TIME | ZONE
            case "today" | "yesterday" | "tomorrow":
                return self._set_today({"yesterday": -1, "today": 0, "tomorrow": 1}[word])
            case "allballs":
                return self._set_midnight()
        self.special = word
        return DATE | TIME | ZONE
