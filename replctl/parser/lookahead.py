"""Examine the state of an LALR parser without consuming a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from lark import Tree
from lark.parsers.lalr_analysis import Reduce
from lark.parsers.lalr_parser_state import ParserState

from replctl.parser import ast
from replctl.parser.precedence import check

_END = "$END"
#: Rules whose children are the operands and operators of an incomplete expression.
_CHAINS = ("_chain", "_b_chain")


def can_follow(parser_state: ParserState[int], kinds: Sequence[str]) -> bool:
    """Return whether the parser would accept tokens of these types next, in this order."""
    conf, stack = parser_state.parse_conf, parser_state.state_stack
    states, kept = conf.parse_table.states, len(stack)
    pushed: list[int] = []
    for kind in kinds:
        while True:
            entry = states[pushed[-1] if pushed else stack[kept - 1]].get(kind)
            if entry is None:
                return False
            _, argument = entry
            if isinstance(argument, int):  # shift
                pushed.append(argument)
                break
            size = len(argument.expansion)
            popped = min(size, len(pushed))
            del pushed[len(pushed) - popped :]
            kept -= size - popped
            _, state = states[pushed[-1] if pushed else stack[kept - 1]][argument.origin.name]
            pushed.append(state)
            if kind == _END and state == conf.end_state:
                return True
    return True


def raise_earlier_error(parser_state: ParserState[int]) -> None:
    """Raise the error of operators before the token at which the parser has stopped, if any.

    precedence.py finds such errors only in complete expressions.  The expressions before the token
    are not complete.
    """
    for value, following in pairwise([*parser_state.value_stack, None]):
        if isinstance(value, Tree) and value.data in _CHAINS:
            check(cast("list[ast.RawExpr]", value.children), following)


def finish_rules(parser_state: ParserState[int]) -> None:
    """Complete rules before a token that cannot follow: their builders may find an earlier error.

    Bison does the same: by default it reduces by the most frequent rule of a state, and only then
    looks at the token.
    """
    conf, stack, values = (
        parser_state.parse_conf,
        parser_state.state_stack,
        parser_state.value_stack,
    )
    while True:
        rules = Counter(
            argument for action, argument in conf.states[stack[-1]].values() if action is Reduce
        )
        if not rules:
            return
        rule = rules.most_common(1)[0][0]
        size = len(rule.expansion)
        children = values[len(values) - size :]
        del stack[len(stack) - size :], values[len(values) - size :]
        values.append(conf.callbacks[rule](children))
        entry = conf.states[stack[-1]].get(rule.origin.name)
        if entry is None:
            return
        stack.append(entry[1])
