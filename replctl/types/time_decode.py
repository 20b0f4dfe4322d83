"""Decode the fields of a time literal by the rules of PostgreSQL's DecodeTimeOnly() in
datetime.c.
"""

from __future__ import annotations

from replctl.types.datetime_decode import (
    DATE,
    DST,
    DYNAMIC_ZONE,
    ERA,
    MERIDIAN,
    TIME,
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
from replctl.types.timezone import Zone


class TimeDecoder(Decoder):
    """Decodes a literal of time or timetz."""

    def decode(self) -> None:
        """Set the attributes.

        Raises:
            DatetimeFault: the fields are not a time.
        """
        for index, field in enumerate(self._fields):
            self._add(self._take(index, field))
        if self._label:
            raise BadFormat
        self._check_date()
        self.clock.apply_meridian()
        self.clock.check()
        if not self._found & TIME:
            raise BadFormat
        if self._found & DST and (self.zone.named is not None or not self._found & ZONE):
            raise BadFormat
        if self.zone.named is not None:
            self.zone.seconds_west = self._offset_of_zone(self.zone.named)
        elif not self._found & ZONE:
            if self._found & DATE not in (0, DATE):
                raise BadFormat
            if not self._found & DATE:
                self._set_today(0)
            self.zone.seconds_west = self._zone_offset(self._format.time_zone)

    def _take(self, index: int, field: Field) -> int:
        text = field.text
        match field.kind:
            case Kind.DATE:
                return self._take_date(index, text)
            case Kind.TIME:
                self._take_time_label()
                return self.clock.read(text)
            case Kind.ZONE:
                return self.zone.read_offset(text)
            case Kind.NUMBER:
                return self._set_labelled(text) if self._label else self._take_number(index, text)
            case Kind.WORD | Kind.SPECIAL:
                return self._take_word(text)

    def _take_date(self, index: int, text: str) -> int:
        kinds = [field.kind for field in self._fields]
        if index == 0 and len(kinds) >= 2 and (kinds[-1] is Kind.DATE or kinds[1] is Kind.TIME):
            return self._set_date(text)
        if not text[0].isdigit():
            return self.zone.read_name(text, UnknownZone(text))
        if self._found & TIME:
            raise BadFormat
        return self._set_clock_with_offset(text, self._found | DATE)

    def _take_number(self, index: int, text: str) -> int:
        if "." in text:
            if index == 0 and len(self._fields) >= 2 and self._fields[-1].kind is Kind.DATE:
                return self._set_date(text)
            if text.index(".") <= 2:
                raise BadFormat
        elif len(text) <= 4:
            return self._set_number(text, self._found | DATE, False)
        return self._set_run_together(text, self._found | DATE)

    def _take_word(self, word: str) -> int:
        zone_parts = self.zone.read_abbreviation(word)
        if zone_parts is not None:
            return zone_parts
        meaning, value = WORDS.get(word[:WORD_LENGTH], ("", ""))
        match meaning:
            case "ignored":
                return 0
            case "reserved" if value == "now":
                return self._set_now()
            case "reserved" if value == "allballs":
                return self._set_midnight()
            case "meridian":
                self.clock.meridian = str(value)
                return MERIDIAN
            case "era":
                self._is_bc = value == "bc"
                return ERA
            case "dst":
                return self.zone.add_dst()
            case "unit":
                return self._set_label(str(value))
            case "time":
                return self._set_label("time")
            case "":
                return self.zone.read_name(word, BadFormat())
        raise BadFormat

    def _offset_of_zone(self, zone: Zone) -> int:
        is_abbreviation = self._found & DYNAMIC_ZONE
        fixed_offset = zone.fixed_offset
        if fixed_offset is not None and not is_abbreviation:
            return -fixed_offset
        if is_abbreviation and not self._found & DATE:
            self._set_today(0)
        elif self._found & DATE != DATE:
            raise BadFormat
        return self._zone_offset(zone)
