"""minhash/1: classic MinHash, in an own scheme and in datasketch's three."""

import numpy as np

from simindex import kernels
from simindex.errors import FeatureError, SchemaError
from simindex.sketch.datasketch import MAX_HASH, Imported, permutations
from simindex.sketch.datasketch import read as _read
from simindex.sketch.family import Params, register
from simindex.sketch.params import check_names, choice, integer
from simindex.sketch.slotted import Slotted, check_states
from simindex.types import U8, Array, Features

_MAX_WIDTH = 16384  # bytes of 4096 slots of 32 bits: a row must fit a block of signatures


@register("minhash/1")
class MinHash(Slotted):
    """k independent minima: the reference for every other Jaccard sketch, at n * k steps an item.

    Parameters: k (1 to 4096, default 128); scheme, "simindex" (default) or datasketch's "affine32",
    "affine64", "legacy"; slots (8, 16 or 32 bits a slot; 64 for affine64); seed (datasketch's schemes only,
    default 1).
    Default slots: 8 for the own scheme, the value's full width for datasketch's, which keeps their
    hashvalues as they are. Narrower slots keep low bits of a mix of the value. The datasketch schemes take
    the hashes that datasketch computes (sketch.datasketch.features), not our own.
    Source: Broder, "On the resemblance and containment of documents", 1997.
    """

    name = "minhash/1"

    def __init__(self, params: Params) -> None:
        check_names(self.name, params, ("k", "scheme", "slots", "seed"))
        k = integer(self.name, "k", params.get("k", 128), 1, kernels.MAX_SLOTS)
        scheme = choice(self.name, "scheme", params.get("scheme", "simindex"), tuple(kernels.MINHASH_SCHEMES))
        widths = (8, 16, 32, 64) if scheme == "affine64" else (8, 16, 32)
        slots = choice(
            self.name, "slots", params.get("slots", 8 if scheme == "simindex" else widths[-1]), widths
        )
        if k * slots // 8 > _MAX_WIDTH:
            raise SchemaError(
                f"{self.name}: {k} slots of {slots} bits are {k * slots // 8} bytes: at most {_MAX_WIDTH}"
            )
        full: Params = {"k": k, "scheme": scheme, "slots": slots}
        if scheme == "simindex":
            if "seed" in params:
                raise SchemaError(
                    f"{self.name}: the own scheme has no seed; 'seed' belongs to datasketch's schemes"
                )
            self._first, self._second = kernels.minhash_constants(k)
        else:
            full["seed"] = integer(self.name, "seed", params.get("seed", 1), 0, 2**32 - 1)
            self._first, self._second = permutations(k, full["seed"], scheme)
        self.scheme_name: str = scheme
        super().__init__(full, k, slots)

    def sign(self, features: Features) -> U8:
        """Return signatures: uint8, shape (n, width); rows of EMPTY and ABSENT items are zero.

        Raises FeatureError if offsets or states are inconsistent, and for affine32 and legacy if a hash has
        more than 32 bits: then it is not datasketch's hash of a token. Releases the GIL.
        """
        check_states(features)
        if MAX_HASH.get(self.scheme_name, 2**64 - 1) < 2**64 - 1 and len(features.hashes):
            worst = int(np.argmax(features.hashes))
            if int(features.hashes[worst]) > MAX_HASH[self.scheme_name]:
                item = int(np.searchsorted(features.ptr, worst, side="right")) - 1
                raise FeatureError(
                    f"item {item} has the hash {int(features.hashes[worst])}: {self.scheme_name!r} takes "
                    "datasketch's 32-bit hashes of tokens (simindex.sketch.datasketch.features makes them)"
                )
        return kernels.minhash_packed(
            features.hashes, features.ptr, self._first, self._second, self.scheme_name, self.slot_bits
        )

    def from_values(self, values: Array) -> U8:
        """Return signatures made from this scheme's minima (uint32 or uint64, shape (n, k)), as sign()."""
        minima = np.ascontiguousarray(values, dtype=np.uint64)
        if minima.ndim != 2 or minima.shape[1] != self.k:
            raise FeatureError(f"values of shape {minima.shape}: {self!r} takes {self.k} a row")
        return kernels.pack_minima(minima, self.scheme_name, self.slot_bits)


def from_datasketch(
    objects: object, scheme: str | None = None, seed: int | None = None, slots: int | None = None
) -> tuple[MinHash, U8, U8]:
    """Return (family, signatures, states) of datasketch's MinHash objects, or of their hashvalues.

    objects: MinHash or LeanMinHash objects of one scheme, seed and num_perm, or an unsigned integer array
    of their hashvalues, shape (n, num_perm). An array does not tell its scheme and seed: give both.
    slots: bits to keep per slot; default all, so that the stored bytes are datasketch's hashvalues.
    states: PRESENT, or EMPTY for objects that were never updated (their signature is zero and matches
    nothing).
    Raises FeatureError, naming the object, where they differ among themselves or from the arguments.
    """
    imported: Imported = _read(objects, scheme, seed)
    params: Params = {"k": imported.values.shape[1], "scheme": imported.scheme, "seed": imported.seed}
    if slots is not None:
        params["slots"] = slots
    family = MinHash(params)
    signatures = family.from_values(imported.values)
    signatures[imported.states < 2] = 0
    return family, signatures, imported.states
