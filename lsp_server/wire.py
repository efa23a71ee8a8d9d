"""Wire types to JSON and back: camelCase names, nothing coerced, errors that name the field."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

import attrs
from cattrs import ClassValidationError, Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from agent_core.errors import InvalidParams
from agent_core.text import encodable


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)


def to_wire(value: Any) -> Any:
    """A wire value as plain JSON; optional fields that were not given are left out.

    What is no UTF-8, such as a path, is sent as it can be shown."""
    return encodable(wire_converter().unstructure(value))


def from_wire(data: Any, kind: type) -> Any:
    """InvalidParams with the path of the first bad field. Halves of surrogate pairs go no further than here."""
    try:
        return wire_converter().structure({} if data is None else encodable(data), kind)
    except Exception as error:
        raise InvalidParams(*_first_fault(error)) from error


@cache
def wire_converter() -> Converter:
    converter = Converter()
    converter.register_structure_hook_factory(attrs.has, lambda kind: _structure_attrs(kind, converter))
    converter.register_unstructure_hook_factory(attrs.has, lambda kind: _unstructure_attrs(kind, converter))
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook_factory(_originates(list), lambda kind: _list_of(get_args(kind)[0], converter))
    converter.register_structure_hook_factory(_originates(Literal), _one_of)
    converter.register_structure_hook_func(_originates(dict), _object)
    return converter


def _originates(origin: Any) -> Any:
    return lambda kind: get_origin(kind) is origin


def _structure_attrs(kind: type, converter: Converter) -> Any:
    structure: Any = make_dict_structure_fn(kind, converter, **_renames(kind))

    def checked(data: Any, _: Any) -> Any:
        if not isinstance(data, dict):
            raise TypeError(f"must be an object, not {_shown(data)}")
        return structure(data, kind)

    return checked


def _unstructure_attrs(kind: type, converter: Converter) -> Any:
    return make_dict_unstructure_fn(kind, converter, _cattrs_omit_if_default=True, **_renames(kind))


def _renames(kind: type) -> Any:
    return {field.name: override(rename=camel(field.name)) for field in attrs.fields(kind)}


def _exactly(kind: type) -> Any:
    def check(data: Any, _: Any) -> Any:
        if type(data) is not kind:
            raise TypeError(f"must be {_NAMES[kind]}, not {_shown(data)}")
        return data

    return check


_NAMES = {str: "a text", int: "a whole number", bool: "true or false"}


def _list_of(item: Any, converter: Converter) -> Any:
    def structure(data: Any, _: Any) -> Any:
        if not isinstance(data, list):
            raise TypeError(f"must be a list, not {_shown(data)}")
        items = []
        for index, each in enumerate(data):
            try:
                items.append(converter.structure(each, item))
            except Exception as error:
                raise _BadItem(index, error) from error
        return items

    return structure


def _one_of(kind: Any) -> Any:
    allowed = get_args(kind)

    def check(data: Any, _: Any) -> Any:
        if data not in allowed:
            raise TypeError(f"must be one of {', '.join(map(str, allowed))}, not {_shown(data)}")
        return data

    return check


class _BadItem(Exception):
    def __init__(self, index: int, error: Exception) -> None:
        super().__init__(index)
        self.index, self.error = index, error


def _object(data: Any, _: Any) -> Any:
    if not isinstance(data, dict):
        raise TypeError(f"must be an object, not {_shown(data)}")
    return data


def _first_fault(error: BaseException, path: str = "") -> tuple[str, str]:
    """(path of the field as written on the wire, what is wrong)."""
    if isinstance(error, ClassValidationError):
        inner, note = error.group_exceptions()[0][0]
        return _first_fault(inner, f"{path}.{camel(note.name)}")
    if isinstance(error, _BadItem):
        return _first_fault(error.error, f"{path}[{error.index}]")
    words = "is missing" if isinstance(error, KeyError) else str(error)
    return path.lstrip(".") or "params", words


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."
