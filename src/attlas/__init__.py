"""attlas: the executable atlas of attention theory.

The module path is the API: import what you need from the folder whose verb fits,
`attlas.data` generates, `attlas.models` apply, `attlas.training` trains, and so on.
Nothing is re-exported here, and importing this package does not import JAX.
"""
