"""Facts about calls of window functions that the engines need."""

from __future__ import annotations

from decimal import Decimal

from replctl.expr import nodes


def range_key(call: nodes.WindowFunc) -> nodes.SortKey | None:
    """Return the key to whose values RANGE adds numbers; None for other frames."""
    is_range = call.frame.startswith("RANGE") and bool(call.offsets)
    adds_numbers = is_range and all(offset.type != "interval" for offset in call.offsets)
    return call.order_by[0] if adds_numbers else None


def offset_scale(call: nodes.WindowFunc) -> int:
    """Return the largest number of digits that an offset of a frame has after the point."""
    scales = [0]
    for offset in call.offsets:
        for node in nodes.walk(offset):
            if isinstance(node, nodes.Const) and node.value is not None:
                exponent = Decimal(node.value).as_tuple().exponent
                scales.append(-exponent if isinstance(exponent, int) else 0)
    return max(scales)
