"""From texts to features: the settings that say what a shingle is, and the call that makes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simindex import kernels
from simindex.errors import FeatureError, SchemaError, shown
from simindex.types import ABSENT, Features, Packed

UNICODE_VERSION: Final[str] = kernels.UNICODE_VERSION
KINDS: Final = ("words", "chars")
FORMS: Final = ("none", "nfc", "nfkc")
_DEFAULTS: Final = {"shingle": "words:3", "normalize": "nfc", "casefold": True}


def parse_shingle(shingle: str) -> tuple[str, int]:
    """Return the kind and the size of a shingle: "words:3" gives ("words", 3).

    Raises SchemaError unless it is "words:n" or "chars:n" with n from 1 to 64.
    """
    if not isinstance(shingle, str):
        raise SchemaError(
            f"shingle is a {type(shingle).__name__}: it is a str such as 'words:3' or 'chars:5'"
        )
    kind, colon, size = shingle.partition(":")
    if kind not in KINDS or not colon:
        raise SchemaError(f"shingle is {shown(shingle)}: it is 'words:n' or 'chars:n', such as 'words:3'")
    if not (
        size.isascii()
        and size.isdigit()
        and 1 <= int(size[:9]) <= kernels.MAX_SHINGLE
        and size == str(int(size))
    ):
        raise SchemaError(f"shingle is {shown(shingle)}: n is a whole number from 1 to {kernels.MAX_SHINGLE}")
    return kind, int(size)


@dataclass(frozen=True, slots=True)
class TextSettings:
    """What a shingle of a text is (the settings "text/1"; everything here reaches the stored hashes).

    shingle:   "words:n" or "chars:n", n from 1 to 64.
    normalize: "none", "nfc" (default) or "nfkc".
    casefold:  full Unicode case folding ("ß" and "ss" are one).

    The pipeline: UTF-8 is decoded; a byte that fits no well-formed sequence becomes a character of its own,
    equal to the same bad byte only, and a surrogate in three-byte form is a character too: nothing
    raises. Then

        none: casefold(x)        nfc: NFC(casefold(NFD(x)))        nfkc: NFC(casefold(NFKD(casefold(NFD(x)))))

    without `casefold` what is left of that, so canonically equivalent texts (nfc), and compatible ones
    (nfkc), are the same. Deviates from Unicode in one thing: more than 128 code points that all join into one
    character are normalised in pieces of 128. All tables are the package's own, of one version
    (`unicode_version`).

    words: a token is a run of letters, marks, numbers and "_" of any script. A letter of a script written
    without spaces (Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar) is a token by itself, together with
    the marks that follow it. With nfc and nfkc, default-ignorable characters (soft hyphen, joiners, variation
    selectors, byte-order marks) are dropped before anything else and so do not divide words; U+200B ZERO
    WIDTH SPACE does. With none they stay and count by their category (a soft hyphen divides). Bad bytes and
    surrogates divide.

    chars: code points, each run of white space made one blank, none at the ends; nothing is dropped.

    A text with fewer than n tokens is one shingle of all it has; one with none is EMPTY.
    """

    shingle: str = "words:3"
    normalize: str = "nfc"
    casefold: bool = True

    def __post_init__(self) -> None:
        parse_shingle(self.shingle)
        if not isinstance(self.normalize, str) or self.normalize not in FORMS:
            raise SchemaError(
                f"normalize is {shown(self.normalize)}: it is one of {', '.join(map(repr, FORMS))}"
            )
        if not isinstance(self.casefold, bool):
            raise SchemaError(f"casefold is {shown(self.casefold)}: it is True or False")

    @property
    def kind(self) -> str:
        """ "words" or "chars"."""
        return parse_shingle(self.shingle)[0]

    @property
    def size(self) -> int:
        """Words or characters in a shingle."""
        return parse_shingle(self.shingle)[1]

    @property
    def unicode_version(self) -> str:
        """The version of the Unicode tables; part of what a schema records."""
        return UNICODE_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the Unicode version."""
        return {
            "shingle": self.shingle,
            "normalize": self.normalize,
            "casefold": self.casefold,
            "unicode": UNICODE_VERSION,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TextSettings":
        """Return the settings that `to_dict` wrote; what is missing has its default.

        Raises SchemaError for unknown names and for another Unicode version than the package's.
        """
        unknown = sorted(set(values) - set(_DEFAULTS) - {"unicode"})
        if unknown:
            raise SchemaError(
                f"unknown text setting {unknown[0]!r}: known are {', '.join(_DEFAULTS)}, unicode"
            )
        version = values.get("unicode", UNICODE_VERSION)
        if version != UNICODE_VERSION:
            raise SchemaError(
                f"the texts were made with Unicode {version}, this version has {UNICODE_VERSION}"
            )
        return cls(**{name: values[name] for name in _DEFAULTS if name in values})

    def arguments(self) -> tuple[int, int, int, bool]:
        """Return (kind, n, normalize, casefold) as the kernels take them."""
        kind, size = parse_shingle(self.shingle)
        return KINDS.index(kind), size, FORMS.index(self.normalize), self.casefold

    def stream(self) -> kernels.TextStream:
        """Return a stream for one text of any length: feed(bytes) -> hashes, finish() -> (hashes, state)."""
        return kernels.TextStream(*self.arguments())


def text_features(texts: Sequence[str | bytes | None], settings: TextSettings) -> Features:
    """Return the shingle hashes of texts; None is ABSENT.

    str and bytes (taken as UTF-8) give the same features. Repeated shingles stay.
    Raises FeatureError that names the position of an item of another type.
    Cost: one copy of the texts; the GIL is released while they are hashed.
    """
    if isinstance(texts, str | bytes):
        raise FeatureError(f"texts is one {type(texts).__name__}: give a sequence of texts")
    data, offsets, absent = kernels.pack_texts(texts)
    found = text_features_packed(Packed(data, offsets), settings)
    found.state[absent != 0] = ABSENT
    return found


def text_features_packed(packed: Packed, settings: TextSettings) -> Features:
    """Return the shingle hashes of texts that lie as UTF-8 in one buffer; no bytes are refused."""
    return Features(*kernels.shingle_texts(packed.data, packed.offsets, *settings.arguments()))
