"""The adapter of a type is built once."""

from dataclasses import dataclass

from bot.core.adapters import adapter_of


@dataclass(frozen=True)
class Waiting:
    """A possible record."""

    number: int


def test_a_value_is_written_and_read_back() -> None:
    assert adapter_of(Waiting).dump_python(Waiting(7), mode="json") == {"number": 7}
    assert adapter_of(Waiting).validate_python({"number": 7}) == Waiting(7)


def test_a_type_has_one_adapter() -> None:
    assert adapter_of(Waiting) is adapter_of(Waiting)
