# cython: language_level=3
"""The JSON-lines scanner: from raw bytes to one text field, without an object per line (csrc/jsonl.h)."""

from libc.stdint cimport int64_t, uint8_t

from collections import namedtuple

import numpy as np

cdef extern from "jsonl.h" nogil:
    ctypedef struct si_json:
        const uint8_t *field
        const uint8_t *label
        size_t field_n
        size_t label_n
    int SI_JSON_OK, SI_JSON_BLANK, SI_JSON_MISSING, SI_JSON_NULL, SI_JSON_NOT_TEXT
    int SI_JSON_BROKEN, SI_JSON_REFUSED
    int SI_LABEL_ABSENT, SI_LABEL_STRING, SI_LABEL_NUMBER, SI_LABEL_OTHER
    int64_t si_count_lines(const uint8_t *p, const uint8_t *end)
    int64_t si_json_lines(si_json *s, const uint8_t *data, int64_t at, int64_t size, int64_t n,
                          int64_t *start, int64_t *stop, uint8_t *status, uint8_t *text, int64_t *offsets,
                          int64_t *label_start, int64_t *label_stop, uint8_t *label_kind)
    void si_span_select(int level)

JSON_OK = SI_JSON_OK
JSON_BLANK = SI_JSON_BLANK
JSON_MISSING = SI_JSON_MISSING
JSON_NULL = SI_JSON_NULL
JSON_NOT_TEXT = SI_JSON_NOT_TEXT
JSON_BROKEN = SI_JSON_BROKEN
JSON_REFUSED = SI_JSON_REFUSED
LABEL_ABSENT = SI_LABEL_ABSENT
LABEL_STRING = SI_LABEL_STRING
LABEL_NUMBER = SI_LABEL_NUMBER
LABEL_OTHER = SI_LABEL_OTHER

JsonLines = namedtuple("JsonLines", "consumed start end status text offsets label_start label_end label_kind")


def _select(int level):
    """Choose the instruction-set level of this module's kernels (see kernels/dispatch.py)."""
    si_span_select(level)


def scan_jsonl(const uint8_t[::1] data not None, bytes field not None, bytes label=None, *, bint final=False,
               bint first=False):
    """Return a JsonLines: what `field` and `label` are in each whole line of `data`.

    data:   whole lines and perhaps the beginning of another, which is left unless `final`.
    field, label: names of top-level keys (UTF-8). first: the stream starts here; a byte-order mark is
    skipped.

    consumed: bytes taken. Per line, n rows: start, end (int64: its bytes, without the newline); status
    (uint8): JSON_OK; JSON_BLANK; JSON_MISSING, JSON_NULL, JSON_NOT_TEXT (sound JSON, but no text there);
    JSON_BROKEN (surely no JSON object); JSON_REFUSED (left to a full parser, sound or not: a repeated field
    or label, an escape in a top-level key, a lone surrogate escape, numbers near or beyond a double's range,
    nesting over 64). text (uint8), offsets (int64, n + 1): the field's text as UTF-8, escapes resolved; empty
    unless JSON_OK. label_start, label_end (int64): the label's JSON value in `data`, with its quotes, -1
    without one; label_kind (uint8): LABEL_ABSENT, LABEL_STRING (no escapes inside), LABEL_NUMBER,
    LABEL_OTHER; absent also in broken lines.

    Every line is validated whole (RFC 8259 and its UTF-8), so JSON_OK means that any parser gives the same
    text.
    """
    cdef int64_t size = data.shape[0], at = 0, n = 0, consumed = 0
    cdef const uint8_t *p = &data[0] if size else NULL
    if first and size >= 3 and p[0] == 0xEF and p[1] == 0xBB and p[2] == 0xBF:
        at = 3
    if size:
        with nogil:
            n = si_count_lines(p + at, p + size)
    if final and size > at and p[size - 1] != 10:
        n += 1
    if n == 0 and not (final or (at and size == at)):
        at = 0
    start = np.empty(n, np.int64)
    end = np.empty(n, np.int64)
    status = np.empty(n, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    label_start = np.empty(n, np.int64)
    label_end = np.empty(n, np.int64)
    label_kind = np.empty(n, np.uint8)
    # Untouched pages of this cost nothing; the scanner may write 64 bytes beyond a text.
    text = np.empty(size + 64, np.uint8)
    cdef int64_t[::1] start_view = start, end_view = end, offsets_view = offsets
    cdef int64_t[::1] label_start_view = label_start, label_end_view = label_end
    cdef uint8_t[::1] status_view = status, text_view = text, kind_view = label_kind
    cdef si_json scan
    scan.field = <const uint8_t *><const char *>field
    scan.field_n = <size_t>len(field)
    scan.label = NULL
    scan.label_n = 0
    if label is not None:
        scan.label = <const uint8_t *><const char *>label
        scan.label_n = <size_t>len(label)
    consumed = at
    if n:
        with nogil:
            consumed = si_json_lines(&scan, p, at, size, n, &start_view[0], &end_view[0], &status_view[0],
                                     &text_view[0], &offsets_view[0], &label_start_view[0],
                                     &label_end_view[0], &kind_view[0])
    return JsonLines(consumed, start, end, status, text[:offsets[n]], offsets, label_start, label_end,
                     label_kind)
