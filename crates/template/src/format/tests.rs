use super::*;
use crate::value::MapType;

fn formatted(heap: &Heap, pattern: &str, values: &[Value]) -> String {
    String::from_utf8_lossy(&sprintf(heap, pattern.as_bytes(), values).expect("a text")).into_owned()
}

#[test]
fn verbs_print_as_in_go() {
    let mut heap = Heap::default();
    let text = heap.string("héllo");
    for (pattern, value, expected) in [
        ("%5d|%-5d|%05d|%+d|% d|%x|%#x|%X|%o|%#o|%O|%b|%#b|%c|%q|%U|%#U", Value::Int(42), ""),
        ("%v", Value::Int(-5), "-5"),
        ("%08.3f", Value::Float(-3.25159), "-003.252"),
        ("%+.2e", Value::Float(12345.678), "+1.23e+04"),
        ("%g", Value::Float(1e21), "1e+21"),
        ("%6.2f%%", Value::Float(99.5), " 99.50%"),
        ("%x", Value::Float(1.5), "0x1.8p+00"),
        ("%#g", Value::Float(1.0), "1.00000"),
        ("%t", Value::Bool(true), "true"),
        ("%8v|", Value::Bool(false), "   false|"),
        ("%s", text, "héllo"),
        ("%.3s|", text, "hél|"),
        ("%8s|", text, "   héllo|"),
        ("%-8s|", text, "héllo   |"),
        ("%x", text, "68c3a96c6c6f"),
        ("% X", text, "68 C3 A9 6C 6C 6F"),
        ("%+q", text, r#""h\u00e9llo""#),
        ("%#q", text, "`héllo`"),
        ("%d", text, "%!d(string=héllo)"),
        ("%z", Value::Int(1), "%!z(int=1)"),
        ("%!", Value::Int(1), "%!!(int=1)"),
        ("%", Value::Int(1), "%!(NOVERB)%!(EXTRA int=1)"),
        ("%[2]d", Value::Int(1), "%!d(BADINDEX)"),
        ("%[1]d %[1]v", Value::Int(1), "1 1"),
        ("%*d", Value::Int(1), "%!d(BADWIDTH)"),
        ("%d %d", Value::Int(1), "1 %!d(MISSING)"),
        ("none", Value::Int(1), "none%!(EXTRA int=1)"),
        ("%s", Value::Nil, "%!s(<nil>)"),
        ("%T", Value::Nil, "<nil>"),
        ("%6v|", Value::Nil, " <nil>|"),
        ("%.0d|", Value::Int(0), "|"),
        ("%x", Value::Int(-255), "-ff"),
    ] {
        if expected.is_empty() {
            continue;
        }
        let expected = if pattern == "%*d" { "%!(BADWIDTH)%!d(MISSING)" } else { expected };
        let value = if pattern == "%*d" { heap.string("x") } else { value };
        assert_eq!(formatted(&heap, pattern, &[value]), expected, "{pattern}");
    }
    let seventeen = [Value::Int(42); 17];
    assert_eq!(
        formatted(&heap, "%5d|%-5d|%05d|%+d|% d|%x|%#x|%X|%o|%#o|%O|%b|%#b|%c|%q|%U|%#U", &seventeen),
        "   42|42   |00042|+42| 42|2a|0x2a|2A|52|052|0o52|101010|0b101010|*|'*'|U+002A|U+002A '*'"
    );
}

#[test]
fn collections_print_as_in_go() {
    let mut heap = Heap::default();
    let a = heap.string("a");
    let list = heap.any_list(vec![Value::Int(1), a, Value::Nil, Value::Float(1e6)]);
    let map = heap.map(MapType::Any);
    heap.set(map, "z", list);
    heap.set(map, "b", Value::Nil);
    let map = Value::Map(map);
    assert_eq!(formatted(&heap, "%v", &[map]), "map[b:<nil> z:[1 a <nil> 1e+06]]");
    assert_eq!(
        formatted(&heap, "%#v", &[map]),
        r#"map[string]interface {}{"b":interface {}(nil), "z":[]interface {}{1, "a", interface {}(nil), 1e+06}}"#
    );
    assert_eq!(formatted(&heap, "%d", &[list]), "[1 %!d(string=a) <nil> %!d(float64=1e+06)]");
    assert_eq!(formatted(&heap, "%T %T", &[list, map]), "[]interface {} map[string]interface {}");
    assert_eq!(sprint(&heap, &[Value::Int(1), Value::Int(2), a, a, Value::Int(3)]).expect("a text"), b"1 2aa3");
    assert_eq!(sprintln(&heap, &[a, Value::Nil]).expect("a text"), b"a <nil>\n");
}

#[test]
fn what_contains_itself_is_refused() {
    let mut heap = Heap::default();
    let map = heap.map(MapType::Any);
    heap.set(map, "self", Value::Map(map));
    assert_eq!(sprint(&heap, &[Value::Map(map)]), Err(Overflow));
}
