"""Cases for `purax.primitives.products.convolution`."""

from purax.primitives.products.contraction import Precision
from purax.primitives.products.convolution import ConvDimensionNumbers, conv_general_dilated_p
from purax.testing.case import case, numbers

_NCHW = ConvDimensionNumbers((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
_NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
_NCW = ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
_NC = ConvDimensionNumbers((0, 1), (0, 1), (0, 1))


def _rows(
    lhs, rhs, spec, strides, padding, lhs_dilation=None, rhs_dilation=None, features=1, batches=1, **options
):
    """The convolution as one linear in the first operand, and as one linear in the kernel."""
    ones = (1,) * len(strides)
    params = dict(
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation or ones,
        rhs_dilation=rhs_dilation or ones,
        dimension_numbers=spec,
        feature_group_count=features,
        batch_group_count=batches,
        precision=options.pop("precision", None),
        preferred_element_type=options.pop("preferred_element_type", None),
    )
    return [
        case(conv_general_dilated_p, lhs, rhs, linear=(position,), **params, **options) for position in (0, 1)
    ]


CASES = [
    *_rows(numbers((2, 3, 5, 4)), numbers((4, 3, 3, 2), seed=1), _NCHW, (1, 1), ((0, 0), (0, 0))),
    *_rows(numbers((2, 3, 6, 5)), numbers((4, 3, 3, 2), seed=1), _NCHW, (2, 1), ((1, 1), (0, 2))),
    *_rows(numbers((2, 5, 4, 3)), numbers((3, 2, 3, 4), seed=1), _NHWC, (1, 2), ((1, 1), (1, 0))),
    *_rows(numbers((2, 3, 6)), numbers((4, 3, 2), seed=1), _NCW, (1,), ((1, 1),), (2,), (1,)),
    *_rows(numbers((2, 3, 7)), numbers((4, 3, 2), seed=1), _NCW, (1,), ((0, 1),), (1,), (3,)),
    *_rows(numbers((2, 4, 6)), numbers((6, 2, 2), seed=1), _NCW, (1,), ((0, 0),), features=2),
    *_rows(numbers((2, 4, 5, 5)), numbers((4, 1, 3, 3), seed=1), _NCHW, (1, 1), ((1, 1), (1, 1)), features=4),
    *_rows(numbers((4, 3, 6)), numbers((4, 3, 2), seed=1), _NCW, (1,), ((0, 0),), batches=2),
    *_rows(numbers((2, 3, 6)), numbers((4, 3, 2), seed=1), _NCW, (1,), ((-1, 2),)),
    *_rows(numbers((2, 3)), numbers((4, 3), seed=1), _NC, (), ()),
    *_rows(numbers((2, 3, 5), "complex64"), numbers((4, 3, 2), "complex64", seed=1), _NCW, (1,), ((0, 0),)),
    *_rows(
        numbers((2, 3, 5)),
        numbers((4, 3, 2), seed=1),
        _NCW,
        (1,),
        ((0, 0),),
        precision=(Precision.HIGHEST,) * 2,
    ),
    case(
        conv_general_dilated_p,
        numbers((2, 3, 5), "bfloat16"),
        numbers((4, 3, 2), "bfloat16", seed=1),
        window_strides=(1,),
        padding=((0, 0),),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=_NCW,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
        preferred_element_type=None,
    ),
    case(
        conv_general_dilated_p,
        numbers((2, 3, 5), "int32"),
        numbers((4, 3, 2), "int32", seed=1),
        window_strides=(2,),
        padding=((1, 0),),
        lhs_dilation=(1,),
        rhs_dilation=(1,),
        dimension_numbers=_NCW,
        feature_group_count=1,
        batch_group_count=1,
        precision=None,
        preferred_element_type=None,
        differentiable=False,
    ),
]
