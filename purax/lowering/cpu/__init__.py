"""Passes over programs for the CPU: repeated layers become functions, and what lies between products row programs.

Inside a compiled program, a function that is called several times is emitted once, and its calls are not inlined; one
that is called once is merged with its caller, unless a `checkpoint` wants it apart. In the order in which they run:

1. `even_shapes`: operands that meet element by element get one shape.
2. `outline` finds layers that were written as a plain Python loop, forwards and backwards, and makes them calls too.
   It numbers equations by what they compute, looks for stretches with a period, cuts them where the fewest bytes
   cross, and shares what is wired alike. Slices that move from step to step take their start as an operand; a chain
   in which each step takes only what the last one gave becomes a loop. Only stretches with matrix products count,
   because elementwise work is faster fused; functions with convolutions are inlined, because XLA brings their axes
   into the order of its fast kernels only outside of functions.
3. `outline_boundaries`: the first layer, which nobody differentiates with respect to the data, does less than the
   others, and becomes one more call all the same if what is then computed for nothing is little.
4. `residuals`: what a layer's derivative needs crosses from the forward to the backward call. A minimum cut makes
   that the fewest bytes from which the rest follows by cheap operations, which the backward function then repeats.
5. `outline_kernels`: XLA makes each distinct kernel once, but the one that joins arrays once per call, which is left
   to a native kernel.
6. `row_clusters` and `row_program`: a compiled kernel costs some 15 ms however small it is. Normalisations, softmax,
   activations and updates of weights between products are gathered into clusters, written as lists of operations, and
   run by a native kernel on a few rows at a time. That is done only if all of a function's float32 work can be
   expressed so, and if it is enough to pay for a call.

Of a training step of 12 transformer layers 4 kernels are compiled instead of 47, in 0.05 of jax's processor time,
with a third of its temporary memory. What remains is XLA's work per call of a function: 10 ms of compilation and 8 ms
of loading from disk for a layer. Loops over stacked weights compile no faster (packing and slicing are kernels too),
and they copy every weight.
"""
