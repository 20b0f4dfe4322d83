"""Dataclasses that are cheap to declare.

`dataclasses` generates and compiles the source of each method of each class.  That took a third of
the time of a command that only reads a catalog.  Here the classes share methods if possible, and
`__init__` is compiled when a class gets its first object.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """Declare a dataclass, with the arguments of dataclasses.dataclass.  Only frozen classes
        share methods.  `dataclasses` declares all others.
        """
        if not frozen:
            return dataclasses.dataclass(cls, slots=slots, eq=eq, repr=repr)

        def declare(cls):
            own = vars(cls)
            cls.__doc__ = (
                cls.__doc__ or cls.__name__
            )  # otherwise its signature would be computed for that
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
            shared = {"__init__": _first_init(made), "__setattr__": _refuse, "__delattr__": _refuse}
            fields = dataclasses.fields(made)
            if eq:
                counts = [f.compare if f.hash is None else f.hash for f in fields]
                hashed = [
                    f.name for f, is_counted in zip(fields, counts, strict=True) if is_counted
                ]
                shared["__eq__"] = _equality([f.name for f in fields if f.compare])
                shared["__hash__"] = _hash(hashed)
            if repr:
                shared["__repr__"] = _representation([f.name for f in fields if f.repr])
            if slots:
                shared |= {"__getstate__": _state, "__setstate__": _restore}
            for name, method in shared.items():
                if name not in own:
                    setattr(made, name, method)
            return made

        return declare

    def _first_init(cls):
        def __init__(self, *args, **given):
            cls.__init__ = _compiled_init(cls)
            cls.__init__(self, *args, **given)

        return __init__

    def _compiled_init(cls):
        """Return the `__init__` that takes the fields and sets them.

        a: int; b: tuple = ()  becomes  def __init__(self, a, b=b_default): _set(self, 'a', a); ...
        """
        parameters, steps = ["self"], []
        scope = {"_set": object.__setattr__}
        for field in sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only)):
            name = value = field.name
            if field.kw_only and "*" not in parameters:
                parameters.append("*")
            if field.default_factory is not dataclasses.MISSING:
                scope[f"{name}_default"] = field.default_factory
                value = f"{name}_default() if {name} is {name}_default else {name}"
            elif field.default is not dataclasses.MISSING:
                scope[f"{name}_default"] = field.default
            parameters.append(f"{name}={name}_default" if f"{name}_default" in scope else name)
            steps.append(f"_set(self, {name!r}, {value})")
        if hasattr(cls, "__post_init__"):
            steps.append("self.__post_init__()")
        exec(f"def __init__({', '.join(parameters)}): {'; '.join(steps) or 'pass'}", scope)
        return scope["__init__"]

    def _refuse(self, name, _value=None):
        raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")

    def _state(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _restore(self, state):
        for field, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, field.name, value)


def _equality(names: list[str]) -> Any:
    values = _values(names)

    def equal(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(names: list[str]) -> Any:
    values = _values(names)
    return lambda self: hash(values(self))


def _representation(names: list[str]) -> Any:
    def represent(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return represent


def _values(names: list[str]) -> Callable[[Any], Any]:
    """Return a function that returns the values of an object's attributes."""
    return attrgetter(*names) if names else lambda _value: ()
