"""The language: dtypes, abstract values, primitives, traces and jaxprs. It knows no operation."""
