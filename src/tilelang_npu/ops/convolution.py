"""The matrix that a convolution multiplies: a row for each output pixel, a column for each element of the kernel.

Row ``m`` belongs to the output pixel ``(m // out_width, m % out_width)``, and column ``k`` to the kernel's element
``(cell // kernel_width, cell % kernel_width)`` and the channel ``k % channels``, where ``cell = k // channels``. Elements of
the matrix outside of the image are 0.
"""

from __future__ import annotations

from typing import NamedTuple

START = 16
"""Loads of patches begin at a multiple of this row, which is the number of rows of a fractal."""


class Patches(NamedTuple):
    """An image, a kernel, and how the kernel moves over the image; all numbers in pixels."""

    height: int
    width: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def out_height(self) -> int:
        """The number of rows of pixels of the output; not positive if the kernel is larger than the padded image."""
        return (self.height + self.top + self.bottom - self.dilation_height * (self.kernel_height - 1) - 1
                ) // self.stride_height + 1

    @property
    def out_width(self) -> int:
        """The number of pixels of a row of the output; not positive if the kernel is larger than the padded image."""
        return (self.width + self.left + self.right - self.dilation_width * (self.kernel_width - 1) - 1
                ) // self.stride_width + 1

    @property
    def cells(self) -> int:
        """The number of elements of the kernel for one channel."""
        return self.kernel_height * self.kernel_width

    @property
    def run(self) -> int:
        """The number of successive rows of the matrix, for one element of the kernel, that are adjacent pixels of the image."""
        return self.out_width if self.stride_width == 1 else 1

    def problem(self) -> str | None:
        """Returns what is wrong with the numbers; None if they describe a convolution."""
        for name, value, least in zip(self._fields, self, [1] * 8 + [0] * 4, strict=True):
            if value < least:
                return f"{name} is {value}, and must be at least {least}"
        if self.out_height <= 0 or self.out_width <= 0:
            return (f"a kernel of {self.kernel_height} x {self.kernel_width} with these dilations is larger than the padded "
                    f"image of {self.height + self.top + self.bottom} x {self.width + self.left + self.right}")
        return None


__all__ = ["START", "Patches"]
