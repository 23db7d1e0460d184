"""Public names of the parts of `jax.scipy` and of the modules beside it, in version 0.10.2."""

from __future__ import annotations

import importlib
import inspect

import pytest

NAMES = {
    "scipy.signal": "convolve convolve2d correlate correlate2d csd detrend fftconvolve istft stft welch",
    "scipy.ndimage": "map_coordinates",
    "scipy.interpolate": "RegularGridInterpolator",
    "scipy.cluster": "vq",
    "scipy.cluster.vq": "vq",
    "scipy.optimize": "OptimizeResults minimize",
    "scipy.sparse": "linalg",
    "scipy.sparse.linalg": "bicgstab cg gmres",
    "scipy.integrate": "trapezoid",
    "scipy.spatial.transform": "Rotation Slerp",
    "image": "ResizeMethod resize scale_and_translate",
    "ops": "segment_max segment_min segment_prod segment_sum",
    "flatten_util": "ravel_pytree",
    "dtypes": (
        "TypePromotionError bfloat16 canonicalize_dtype extended finfo float0 iinfo issubdtype itemsize_bits prng_key "
        "result_type scalar_type_of"
    ),
    "experimental.sparse": (
        "BCOO BCSR COO CSC CSR CuSparseEfficiencyWarning JAXSparse SparseEfficiencyError SparseEfficiencyWarning "
        "SparseTracer ad api bcoo bcoo_broadcast_in_dim bcoo_concatenate bcoo_conv_general_dilated bcoo_dot_general "
        "bcoo_dot_general_p bcoo_dot_general_sampled bcoo_dot_general_sampled_p bcoo_dynamic_slice bcoo_extract "
        "bcoo_extract_p bcoo_fromdense bcoo_fromdense_p bcoo_gather bcoo_multiply_dense bcoo_multiply_sparse "
        "bcoo_reduce_sum bcoo_reshape bcoo_rev bcoo_slice bcoo_sort_indices bcoo_sort_indices_p bcoo_spdot_general_p "
        "bcoo_squeeze bcoo_sum_duplicates bcoo_sum_duplicates_p bcoo_todense bcoo_todense_p bcoo_transpose "
        "bcoo_transpose_p bcoo_update_layout bcsr bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general "
        "bcsr_dot_general_p bcsr_extract bcsr_extract_p bcsr_fromdense bcsr_fromdense_p bcsr_sum_duplicates "
        "bcsr_todense bcsr_todense_p coo coo_fromdense coo_fromdense_p coo_matmat coo_matmat_p coo_matvec "
        "coo_matvec_p coo_todense coo_todense_p csr csr_fromdense csr_fromdense_p csr_matmat csr_matmat_p csr_matvec "
        "csr_matvec_p csr_todense csr_todense_p empty eye grad jacfwd jacobian jacrev linalg random random_bcoo "
        "sparsify todense todense_p transform value_and_grad"
    ),
    "experimental.sparse.linalg": "lobpcg_standard spsolve spsolve_p",
}

# What is missing, by the reason.
OMITTED = {
    "sparse operations are made of dense ones here and have no primitives": (
        "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p "
        "bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p "
        "bcsr_fromdense_p bcsr_todense_p coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p csr_fromdense_p "
        "csr_matmat_p csr_matvec_p csr_todense_p todense_p spsolve_p"
    ),
    "`sparsify` interprets a program and needs no tracer": "SparseTracer",
    "modules of the implementation, of which ours has others": "api bcsr coo csr random util",
}
LACKING = {name for names in OMITTED.values() for name in names.split()}
KNOWN_DIFFERENCES = {
    # A parameter of ours that jax lacks, or one that has a default of its own here.
    "scipy.signal.csd",
}


@pytest.mark.parametrize("module", NAMES)
def test_all_names_are_there(module):
    ours = importlib.import_module(f"purax.{module}")
    wanted = NAMES[module].split()
    missing = [name for name in wanted if not hasattr(ours, name)]
    assert sorted(missing) == sorted(set(wanted) & LACKING), "OMITTED and what is missing differ"


@pytest.mark.parametrize("module", NAMES)
def test_parameters_are_those_of_jax(module):
    ours = importlib.import_module(f"purax.{module}")
    jax_module = importlib.import_module(f"jax.{module}")
    for name in set(NAMES[module].split()) - LACKING:
        function, reference = getattr(ours, name), getattr(jax_module, name)
        if inspect.ismodule(reference) or inspect.isclass(reference):
            continue
        try:
            wanted = list(inspect.signature(reference).parameters)
        except (TypeError, ValueError):
            continue
        given = list(inspect.signature(function).parameters)
        if module == "dtypes" or wanted == ["args", "kwargs"]:
            continue
        assert given == wanted, f"{module}.{name}"


def test_methods_of_classes_are_those_of_jax():
    classes = [
        "scipy.spatial.transform.Rotation",
        "scipy.spatial.transform.Slerp",
        "experimental.sparse.BCOO",
    ]
    classes += [
        "experimental.sparse.BCSR",
        "experimental.sparse.COO",
        "experimental.sparse.CSR",
        "image.ResizeMethod",
    ]
    for path in classes:
        module, _, name = path.rpartition(".")
        ours = getattr(importlib.import_module(f"purax.{module}"), name)
        reference = getattr(importlib.import_module(f"jax.{module}"), name)
        wanted = {method for method in dir(reference) if not method.startswith("_")}
        assert wanted <= set(dir(ours)), path


def test_importing_purax_leaves_these_alone():
    import subprocess
    import sys

    code = (
        "import sys, purax; print([m for m in sys.modules if m.startswith(('purax.scipy', 'purax.image', "
        "'purax.experimental', 'purax.flatten_util', 'scipy'))])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
