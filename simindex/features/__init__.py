"""What an item is made of: hashed features of texts and of sets (types.Features)."""

from simindex.features.sets import set_features, set_features_csr
from simindex.features.text import (
    UNICODE_VERSION,
    TextSettings,
    parse_shingle,
    text_features,
    text_features_packed,
)

__all__ = [
    "UNICODE_VERSION",
    "TextSettings",
    "parse_shingle",
    "set_features",
    "set_features_csr",
    "text_features",
    "text_features_packed",
]
