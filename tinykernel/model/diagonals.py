"""The three ways in which an `IntegerModel` holds G."""

#: Largest magnitude in a diagonal, by kind.
LARGEST = {"int8": 127, "int4": 7, "sign": 1}

#: Bits that one entry takes, by kind.
BITS = {"int8": 8, "int4": 4, "sign": 1}

#: Right shift of the product with a diagonal, by kind: no product is larger than what it came from.
SHIFTS = {"int8": 7, "int4": 3, "sign": 0}
