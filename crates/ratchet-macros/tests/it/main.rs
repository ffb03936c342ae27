//! Compile errors are designed, so their texts are tested. `TRYBUILD=overwrite` writes them anew.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
