//! The played stack must not share the library's faults.

use std::{fs, path::Path};

#[test]
fn the_played_stack_uses_nothing_of_the_library() {
    let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm/stack");
    let mut files = 0;
    for file in fs::read_dir(stack).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for name in ["eventflow::", "crate::world", "extern crate"] {
            assert!(!text.contains(name), "{} uses {name}", path.display());
        }
        files += 1;
    }
    assert!(files >= 9, "it was looked at all of it");
}
