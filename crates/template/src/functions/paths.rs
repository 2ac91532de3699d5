//! Paths with slashes, as Go's `path` cuts them; `path/filepath` does the same on everything but Windows.

use super::{Function, bytes, function};
use crate::execute::Machine;
use crate::value::{Operand, Type, Value};

const TEXT: &[Type] = &[Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    function("base", TEXT, |machine, arguments| Ok(changed(machine, arguments, base))),
    function("osBase", TEXT, |machine, arguments| Ok(changed(machine, arguments, base))),
    function("dir", TEXT, |machine, arguments| Ok(changed(machine, arguments, directory))),
    function("osDir", TEXT, |machine, arguments| Ok(changed(machine, arguments, directory))),
    function("clean", TEXT, |machine, arguments| Ok(changed(machine, arguments, clean))),
    function("osClean", TEXT, |machine, arguments| Ok(changed(machine, arguments, clean))),
    function("ext", TEXT, |machine, arguments| Ok(changed(machine, arguments, extension))),
    function("osExt", TEXT, |machine, arguments| Ok(changed(machine, arguments, extension))),
    function("isAbs", TEXT, is_absolute),
    function("osIsAbs", TEXT, is_absolute),
];

fn is_absolute(machine: &mut Machine<'_>, arguments: &[Operand]) -> super::Returned {
    Ok(Value::Bool(bytes(&machine.heap, arguments, 0).starts_with(b"/")))
}

fn changed(machine: &mut Machine<'_>, arguments: &[Operand], change: fn(&[u8]) -> Vec<u8>) -> Value {
    let output = change(bytes(&machine.heap, arguments, 0));
    machine.heap.string(output)
}

/// `path.Base`
pub(crate) fn base(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let name = path[..end].rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if name.is_empty() { b"/".to_vec() } else { name.to_vec() }
}

fn directory(path: &[u8]) -> Vec<u8> {
    clean(&path[..path.iter().rposition(|byte| *byte == b'/').map_or(0, |last| last + 1)])
}

fn extension(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.iter().rposition(|byte| *byte == b'.').map_or_else(Vec::new, |dot| name[dot..].to_vec())
}

fn clean(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let is_rooted = path[0] == b'/';
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|last| *last != b"..") => {
                parts.pop();
            }
            b".." if is_rooted => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join(&b'/');
    match (is_rooted, joined.is_empty()) {
        (true, _) => [b"/", &*joined].concat(),
        (false, true) => b".".to_vec(),
        (false, false) => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cut_as_in_go() {
        for (path, expected) in [
            ("", [".", ".", ".", ""]),
            ("a/b.c", ["b.c", "a", "a/b.c", ".c"]),
            ("/", ["/", "/", "/", ""]),
            ("/a//b/../c/", ["c", "/a/c", "/a/c", ""]),
            ("../../a", ["a", "../..", "../../a", ""]),
            ("/../a.tar.gz", ["a.tar.gz", "/", "/a.tar.gz", ".gz"]),
            ("a/..", ["..", "a", ".", "."]),
        ] {
            let found = [base, directory, clean, extension].map(|change| change(path.as_bytes()));
            assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()), "{path}");
        }
    }
}
