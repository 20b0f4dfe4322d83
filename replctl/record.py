"""Dataclasses that are cheap to declare.

`dataclasses` generates and compiles the source of each method of each class.  That took a third of
the time of a command that only reads a catalog.  Here the classes share methods if possible.
`__init__` is compiled only for classes with many objects.  The functions of `dataclasses` (fields,
replace, ..) accept the classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """Declare a dataclass, with the arguments of dataclasses.dataclass."""

        def declare(cls):
            own = vars(cls)
            fields = _fields_of(cls)
            shared = {
                "__dataclass_fields__": fields,
                "__dataclass_params__": _PARAMETERS,
                "__match_args__": _names(fields, lambda field: field.init and not field.kw_only),
            }
            if eq:
                shared["__eq__"] = _equality(_names(fields, lambda field: field.compare))
                shared["__hash__"] = _hash(_names(fields, _is_hashed)) if frozen else None
            if repr:
                shared["__repr__"] = _representation(_names(fields, lambda field: field.repr))
            if frozen:
                shared |= {"__setattr__": _refuse, "__delattr__": _refuse}
            if frozen and slots:
                shared |= {"__getstate__": _state, "__setstate__": _restore}
            added = {name: value for name, value in shared.items() if name not in own}
            if slots:
                made = _with_slots(cls, fields, added)
            else:
                made = cls
                for name, value in added.items():
                    setattr(made, name, value)
            if "__init__" not in own:
                made.__init__ = _first_init(made)
            return made

        return declare if cls is None else declare(cls)

    def _names(fields, is_included):
        return tuple(name for name, field in fields.items() if is_included(field))

    def _is_hashed(field):
        return field.compare if field.hash is None else field.hash

    #: The number of a class's objects before its `__init__` is compiled.  Compiling takes as long
    #: as about a hundred objects without it.
    _FIRST_OBJECTS = 64

    #: The parameters of a class that has no methods of `dataclasses`.
    _PARAMETERS = dataclasses.dataclass(init=False, repr=False, eq=False)(
        type("_Methodless", (), {"__doc__": "Has no methods."})
    ).__dataclass_params__

    def _fields_of(cls):
        """Return the fields of a class by their names, those of its bases first.  Replace the
        declarations of its own fields by their defaults.

        `dataclasses` needs four times as long, because it looks for all forms of ClassVar and
        InitVar.  No class here has class variables.
        """
        fields = {}
        for base in cls.__mro__[-1:0:-1]:
            fields.update(vars(base).get("__dataclass_fields__", ()))
        for name, annotation in inspect.get_annotations(cls).items():
            default = vars(cls).get(name, dataclasses.MISSING)
            is_declared = isinstance(default, dataclasses.Field)
            field = default if is_declared else dataclasses.field(default=default)
            field.name, field.type, field._field_type = name, annotation, dataclasses._FIELD
            if field.kw_only is dataclasses.MISSING:
                field.kw_only = False
            if is_declared and field.default is dataclasses.MISSING:
                delattr(cls, name)
            elif is_declared:
                setattr(cls, name, field.default)
            if field.default.__class__.__hash__ is None:
                raise ValueError(f"mutable default of field {name!r}: use default_factory")
            fields[name] = field
        return fields

    def _with_slots(cls, fields, added):
        """Return a copy of a class with slots for its own fields, and the attributes `added`.
        Python cannot add slots to an existing class.
        """
        inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
        namespace = {**vars(cls), **added}
        for name in ("__dict__", "__weakref__", *fields):
            namespace.pop(name, None)
        namespace["__slots__"] = tuple(name for name in fields if name not in inherited)
        namespace["__qualname__"] = cls.__qualname__
        return type(cls)(cls.__name__, cls.__bases__, namespace)

    def _first_init(cls):
        """Return the `__init__` of a class's first objects."""
        left = _FIRST_OBJECTS

        def __init__(self, *args, **given):
            nonlocal left
            left -= 1
            values = _values_of(cls, args, dict(given)) if left >= 0 else None
            if values is None:
                cls.__init__ = _compiled_init(cls)
                cls.__init__(self, *args, **given)
                return
            for name, value in values.items():
                object.__setattr__(self, name, value)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()

        return __init__

    def _values_of(cls, args, given):
        """Return the values of an object's fields by their names; None if arguments are wrong."""
        values, taken = {}, 0
        for name, field in cls.__dataclass_fields__.items():
            if field.init and not field.kw_only and taken < len(args):
                values[name] = args[taken]
                taken += 1
            elif field.init and name in given:
                values[name] = given.pop(name)
            elif field.default is not dataclasses.MISSING:
                values[name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                values[name] = field.default_factory()
            elif field.init:
                return None
        return None if given or taken < len(args) else values

    def _compiled_init(cls):
        """Return the `__init__` that takes the fields and sets them.

        a: int; b: tuple = ()  becomes  def __init__(self, a, b=b_default): _set(self, 'a', a); ...
        """
        parameters, steps = ["self"], []
        scope = {"_set": object.__setattr__}
        for field in sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only)):
            name = value = field.name
            if field.default_factory is not dataclasses.MISSING:
                scope[f"{name}_default"] = field.default_factory
                value = f"{name}_default() if {name} is {name}_default else {name}"
            elif field.default is not dataclasses.MISSING:
                scope[f"{name}_default"] = field.default
            has_default = f"{name}_default" in scope
            if field.init:
                if field.kw_only and "*" not in parameters:
                    parameters.append("*")
                parameters.append(f"{name}={name}_default" if has_default else name)
            elif has_default:
                is_made = field.default_factory is not dataclasses.MISSING
                value = f"{name}_default()" if is_made else f"{name}_default"
            else:  # __post_init__ sets it
                continue
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


def _equality(names: tuple[str, ...]) -> Any:
    values = _values(names)

    def equal(self: object, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return equal


def _hash(names: tuple[str, ...]) -> Any:
    values = _values(names)
    return lambda self: hash(values(self))


def _representation(names: tuple[str, ...]) -> Any:
    @recursive_repr("...")
    def represent(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return represent


def _values(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Return a function that returns the values of an object's attributes."""
    return attrgetter(*names) if names else lambda _value: ()
