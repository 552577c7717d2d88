//! Token-array generation through a Dynamo frontend, pinned to one engine and checked against it.
