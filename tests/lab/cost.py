# SPDX-License-Identifier: GPL-2.0
"""What one of many costs, beside one of a few."""


def bounded(limit, many, few):
    """MANY() and FEW() measure what one costs. Their ratio is below LIMIT, once in three tries:
    other work of the machine makes single ones larger."""
    ratios = []
    while len(ratios) < 3 and not (ratios and min(ratios) < limit):
        ratios.append(many() / few())
    assert min(ratios) < limit, ratios
