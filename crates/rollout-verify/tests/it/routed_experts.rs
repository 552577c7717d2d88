//! Routed experts: both forms, there and back, and files that lie. The files are NumPy 2.4.6's.

use std::borrow::Cow;

use proptest::prelude::*;
use rollout_verify::routed_experts::{
    Compact, ConvertRefusal, Coverage, Form, NpyRefusal, RoutedExperts, RoutingRefusal, RowsMismatch, Width,
    convert,
};
use rollout_verify::{NotBase64, decode_base64};

const MAX: usize = 1 << 20;
/// `arange(12).reshape(2, 3, 2)` as `uint8`, and its bytes.
const U1: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAQIDBAUGBwgJCgs=";
const U1_BYTES: &str = "AAECAwQFBgcICQoL";
/// The same as `int32`, as big-endian `uint16`, in Fortran order, and with a header of version 2.
const I4: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnPGk0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAQAAAAIAAAADAAAABAAAAAUAAAAGAAAABwAAAAgAAAAJAAAACgAAAAsAAAA=";
const BIG: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnPnUyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAABAAIAAwAEAAUABgAHAAgACQAKAAs=";
const FORTRAN: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgMiksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoABgIIBAoBBwMJBQs=";
const SECOND: &str = "k05VTVBZAgB0AAAAeydkZXNjcic6ICd8dTEnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMywgMiksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAQIDBAUGBwgJCgs=";
/// Thirty times as much, as `int16`: 330 needs two bytes.
const I2: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnPGkyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMsIDIpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAB4APABaAHgAlgC0ANIA8AAOASwBSgE=";
const I2_BYTES: &str = "AAAeADwAWgB4AJYAtADSAPAADgEsAUoB";
/// `zeros((0, 3, 2), uint8)`.
const NO_ROWS: &str = "k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDAsIDMsIDIpLCB9ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo=";

fn compact(data: &str, shape: [usize; 3], dtype: Width) -> Compact<'_> {
    Compact { data: Cow::Borrowed(data), shape, start: 0, dtype }
}

fn read(text: &str) -> Result<RoutedExperts, RoutingRefusal> {
    RoutedExperts::from_npy_base64(text, 0, MAX)
}

/// A file with this header and body.
fn file(header: &str, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), body].concat()
}

fn refusal(header: &str, body: &[u8]) -> RoutingRefusal {
    RoutedExperts::from_npy(&file(header, body), 0, MAX).unwrap_err()
}

#[test]
fn each_file_of_numpy_becomes_the_bytes_that_numpy_makes_of_it() {
    for text in [U1, I4, BIG, FORTRAN, SECOND] {
        let routing = read(text).unwrap();
        assert_eq!(routing.to_compact(), compact(U1_BYTES, [2, 3, 2], Width::Uint8));
        assert_eq!(routing.to_npy_base64(), U1, "as NumPy writes it");
        assert_eq!((routing.expert(1, 2, 1), routing.max_expert()), (Some(11), Some(11)));
        assert_eq!(routing.expert(0, 1, 0), Some(2));
    }
    let wide = read(I2).unwrap();
    assert_eq!(wide.to_compact(), compact(I2_BYTES, [2, 3, 2], Width::Uint16));
    assert_eq!((wide.expert(1, 2, 1), wide.max_expert()), (Some(330), Some(330)));
    assert_eq!(read(NO_ROWS).unwrap().to_compact(), compact("", [0, 3, 2], Width::Uint8));
    assert_eq!(read(NO_ROWS).unwrap().to_npy_base64(), NO_ROWS);
}

#[test]
fn there_is_no_expert_outside_the_shape() {
    let routing = read(U1).unwrap();
    for (row, layer, place) in [(2, 0, 0), (0, 3, 0), (0, 0, 2), (usize::MAX, usize::MAX, usize::MAX)] {
        assert_eq!(routing.expert(row, layer, place), None);
    }
    assert_eq!(read(NO_ROWS).unwrap().max_expert(), None);
}

#[test]
fn the_compact_form_is_read_as_it_is_written() {
    let json = r#"{"data":"AAECAwQFBgcICQoL","shape":[2,3,2],"start":7,"dtype":"uint8"}"#;
    let form: Compact<'_> = serde_json::from_str(json).unwrap();
    assert!(matches!(form.data, Cow::Borrowed(_)));
    let routing = RoutedExperts::from_compact(&form, MAX).unwrap();
    assert_eq!((routing.start(), routing.shape()), (7, [2, 3, 2]));
    assert_eq!(serde_json::to_string(&routing.to_compact()).unwrap(), json);
    let implied = r#"{"data":"","shape":[0,3,2],"dtype":"uint16"}"#;
    assert_eq!(serde_json::from_str::<Compact<'_>>(implied).unwrap().start, 0);
    for lie in [
        r#"{"data":"","shape":[0,3],"dtype":"uint8"}"#,
        r#"{"data":"","shape":[0,3,-2],"dtype":"uint8"}"#,
        r#"{"data":"","shape":[0,3,2.0],"dtype":"uint8"}"#,
        r#"{"data":"","shape":[0,3,2],"dtype":"float32"}"#,
        r#"{"data":"","shape":[0,3,2],"dtype":"uint8","order":"F"}"#,
        r#"{"data":"","data":"","shape":[0,3,2],"dtype":"uint8"}"#,
    ] {
        assert!(serde_json::from_str::<Compact<'_>>(lie).is_err(), "{lie}");
    }
}

#[test]
fn a_shape_that_lies_is_refused_before_anything_is_allocated() {
    let of = |data, shape, dtype| RoutedExperts::from_compact(&compact(data, shape, dtype), MAX).unwrap_err();
    let length = |expected, got| RoutingRefusal::Length { expected, got };
    assert_eq!(of(U1_BYTES, [2, 3, 3], Width::Uint8), length(18, 12));
    assert_eq!(of(U1_BYTES, [2, 3, 2], Width::Uint16), length(24, 12));
    assert_eq!(of("AAEC", [1, 1, 2], Width::Uint8), length(2, 3));
    let too_large = RoutingRefusal::TooLarge { max: MAX };
    for huge in [[usize::MAX, 2, 2], [1 << 32, 1 << 31, 2], [MAX + 1, 1, 1], [MAX / 2 + 1, 1, 2]] {
        assert_eq!(of("", huge, Width::Uint8), too_large);
    }
    assert_eq!(of("", [MAX / 2 + 1, 1, 1], Width::Uint16), too_large);
    assert_eq!(of("", [2, 0, 2], Width::Uint8), RoutingRefusal::EmptyAxis);
    assert_eq!(of("", [2, 2, 0], Width::Uint8), RoutingRefusal::EmptyAxis);
    assert_eq!(of("AA-C", [1, 1, 3], Width::Uint8), NotBase64 { offset: 2 }.into());
    assert_eq!(
        RoutedExperts::from_npy_base64(&"A".repeat(16 << 10), 0, 8).unwrap_err(),
        RoutingRefusal::TooLarge { max: 8 }
    );
}

#[test]
fn a_header_that_lies_is_refused() {
    let shape = |shape: &str| format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
    assert_eq!(refusal(&shape("(2, 3, 2)"), &[0; 11]), RoutingRefusal::Length { expected: 12, got: 11 });
    assert_eq!(refusal(&shape("(2, 3, 2)"), &[0; 13]), RoutingRefusal::Length { expected: 12, got: 13 });
    let too_large = RoutingRefusal::TooLarge { max: MAX };
    assert_eq!(refusal(&shape("(18446744073709551615, 2, 2)"), &[]), too_large);
    assert_eq!(refusal(&shape("(1048577, 1, 1)"), &[]), too_large);
    for (header, expected) in [
        (shape("(18446744073709551616, 1, 1)"), NpyRefusal::Header { at: 51 }),
        (shape("(-1, 3, 2)"), NpyRefusal::Header { at: 51 }),
        (shape("(2, 3)"), NpyRefusal::Axes { axes: 2 }),
        (shape("()"), NpyRefusal::Axes { axes: 0 }),
        (shape("(1, 1, 1, 1)"), NpyRefusal::Axes { axes: 4 }),
        (shape("(2, 3, 2"), NpyRefusal::Header { at: 60 }),
        (shape("(2, 3, 2)").replace("False", "false"), NpyRefusal::Header { at: 34 }),
        (shape("(2, 3, 2)").replace("fortran", "Fortran"), NpyRefusal::Header { at: 17 }),
        (shape("(2, 3, 2)").replace("'shape'", "'descr'"), NpyRefusal::NotIntegers),
        ("{'descr': '|u1', 'descr': '|u1', }".into(), NpyRefusal::Header { at: 17 }),
        (shape("(2, 3, 2)") + "x", NpyRefusal::Header { at: 63 }),
        ("{'descr': '|u1', }".into(), NpyRefusal::Header { at: 18 }),
        (String::new(), NpyRefusal::Header { at: 0 }),
        ("{'descr".into(), NpyRefusal::Header { at: 2 }),
    ] {
        assert_eq!(refusal(&header, &[0; 12]), expected.into(), "{header}");
    }
}

#[test]
fn only_plain_integers_are_read_and_nothing_is_unpickled() {
    for descr in ["|O", "'<f4'", "<c8", "|S1", "|b1", "<u3", "=u2", "|u2", "u1", "<i16", "[('a', '<i4')]", ""]
    {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1, 1, 1), }}\n");
        assert_eq!(refusal(&header, &[0; 16]), NpyRefusal::NotIntegers.into(), "{descr}");
    }
    let record = "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1, 1, 1), }\n";
    assert_eq!(refusal(record, &[0; 4]), NpyRefusal::NotIntegers.into());
}

#[test]
fn a_preamble_that_lies_is_refused() {
    let parse = |file: &[u8]| RoutedExperts::from_npy(file, 0, MAX).unwrap_err();
    for short in
        [&b""[..], b"\x93NUMP", b"\x93NUMPY", b"\x93NUMPY\x01", b"\x93NUMPY\x01\x00\x10", b"\x80\x04pickle"]
    {
        assert_eq!(parse(short), NpyRefusal::NotNpy.into());
    }
    assert_eq!(parse(b"\x93NUMPY\x04\x00\x00\x00"), NpyRefusal::Version { major: 4, minor: 0 }.into());
    assert_eq!(parse(b"\x93NUMPY\x01\x01\x00\x00"), NpyRefusal::Version { major: 1, minor: 1 }.into());
    assert_eq!(parse(b"\x93NUMPY\x01\x00\x10\x00{}"), NpyRefusal::HeaderLength { said: 16 }.into());
    let said = u32::MAX as usize;
    assert_eq!(parse(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}"), NpyRefusal::HeaderLength { said }.into());
    let long = file(&" ".repeat(10_001), &[]);
    assert_eq!(parse(&long), NpyRefusal::HeaderLength { said: 10_001 }.into());
}

#[test]
fn an_id_is_from_0_to_65535() {
    let of = |descr: &str, body: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1, 1, 2), }}\n");
        RoutedExperts::from_npy(&file(&header, body), 0, MAX).map(|routing| routing.expert(0, 0, 1))
    };
    assert_eq!(of("|i1", &[0, 0x7f]), Ok(Some(127)));
    assert_eq!(of("|i1", &[0, 0xff]), Err(RoutingRefusal::Negative { index: 1 }));
    assert_eq!(of("<u2", &[0, 0, 0xff, 0xff]), Ok(Some(65535)));
    assert_eq!(of("<i4", &[0, 0, 0, 0, 0xff, 0xff, 0, 0]), Ok(Some(65535)));
    assert_eq!(of("<i4", &[0, 0, 0, 0, 0, 0, 1, 0]), Err(RoutingRefusal::AboveRange { index: 1 }));
    assert_eq!(of("<i8", &[0xff; 16]), Err(RoutingRefusal::Negative { index: 0 }));
    assert_eq!(of("<u8", &[0xff; 16]), Err(RoutingRefusal::AboveRange { index: 0 }));
}

#[test]
fn rows_are_those_of_the_tokens_or_nothing_is() {
    let at = |start| RoutedExperts::from_npy_base64(U1, start, MAX).unwrap();
    assert_eq!(at(0).covers(1, 1), Ok(Coverage::All));
    assert_eq!(at(0).covers(1, 2), Ok(Coverage::AllButLast), "vLLM: the last sampled token was not routed");
    assert_eq!(at(5).covers(4, 3), Ok(Coverage::All));
    let mismatch = |rows, start, tokens| Err(RowsMismatch { rows, start, tokens });
    assert_eq!(at(0).covers(1, 3), mismatch(2, 0, 4), "never padded");
    assert_eq!(at(0).covers(1, 0), mismatch(2, 0, 1), "never cut");
    assert_eq!(at(0).covers(3, 0), mismatch(2, 0, 3), "a prompt has no sampled token");
    assert_eq!(at(usize::MAX).covers(1, 1), mismatch(2, usize::MAX, 2));
}

#[test]
fn an_answer_keeps_every_other_byte() {
    let answer = format!(
        r#"{{ "id":"x", "kv_transfer_params": {{"remote_port": 1.50, "big":18446744073709551616}},
  "choices":[{{"index":0,"new_field":[1e400,"é\u00e9"],"routed_experts":"{U1}", "token_ids":[1,2]}},
    {{"routed_experts" : null,"index":1}}], "nvext":{{"engine_data":{{"routed_experts":"{I2}","x":-0.0}} }} }}"#
    );
    let converted = convert(&answer, Form::Compact, 3, MAX).unwrap().unwrap();
    let object = |data: &str, dtype: &str| {
        format!(r#"{{"data":"{data}","shape":[2,3,2],"start":3,"dtype":"{dtype}"}}"#)
    };
    let expected = answer
        .replace(&format!("\"{U1}\""), &object(U1_BYTES, "uint8"))
        .replace(&format!("\"{I2}\""), &object(I2_BYTES, "uint16"));
    assert_eq!(converted, expected);
    assert_eq!(convert(&converted, Form::Compact, 3, MAX), Ok(None), "nothing left to convert");
    let back = convert(&converted, Form::Npy, 3, MAX).unwrap().unwrap();
    assert_eq!(
        back.replace(&format!("\"{}\"", read(I2).unwrap().to_npy_base64()), &format!("\"{I2}\"")),
        answer
    );
}

#[test]
fn an_answer_without_routed_experts_is_left_alone() {
    for answer in [
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":null,"nvext":null}"#,
        r#"{"error":{"message":"no"}}"#,
        r#"{"nvext":{"engine_data":"opaque"}}"#,
    ] {
        assert_eq!(convert(answer, Form::Npy, 0, MAX), Ok(None), "{answer}");
    }
}

#[test]
fn an_answer_that_lies_is_refused() {
    let not_an_answer =
        |answer: &str| matches!(convert(answer, Form::Npy, 0, MAX), Err(ConvertRefusal::NotAnAnswer(_)));
    for answer in ["", "[", "{\"choices\":[1]}", "{\"choices\":[],\"choices\":[]}", "{\"nvext\":7}"] {
        assert!(not_an_answer(answer), "{answer}");
    }
    for value in ["7", "[]", "{}", r#"{"data":"","shape":[0,1,1],"dtype":"int4"}"#] {
        let answer = format!(r#"{{"choices":[{{"routed_experts":{value}}}]}}"#);
        let refusal = convert(&answer, Form::Npy, 0, MAX).unwrap_err();
        assert!(matches!(refusal, ConvertRefusal::NeitherForm(_)), "{value}: {refusal}");
    }
    // SGLang's bare array has no shape to convert by.
    let bare = format!(r#"{{"nvext":{{"routed_experts":"{U1_BYTES}"}}}}"#);
    assert_eq!(
        convert(&bare, Form::Compact, 0, MAX),
        Err(ConvertRefusal::Routing(NpyRefusal::NotNpy.into()))
    );
}

proptest! {
    #[test]
    fn both_forms_carry_the_same_ids(
        (shape, ids) in (0usize..5, 1usize..4, 1usize..4).prop_flat_map(|(t, l, k)| {
            (Just([t, l, k]), prop::collection::vec(prop_oneof![0u16..300, any::<u16>()], t * l * k))
        }),
        start in 0usize..1000,
    ) {
        let body: Vec<u8> = ids.iter().flat_map(|&id| u32::from(id).to_le_bytes()).collect();
        let [t, l, k] = shape;
        let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({t}, {l}, {k}), }}\n");
        let routing = RoutedExperts::from_npy(&file(&header, &body), start, MAX).unwrap();
        let mut read = Vec::new();
        for (row, layer, place) in (0..t).flat_map(|r| (0..l).flat_map(move |a| (0..k).map(move |p| (r, a, p)))) {
            read.extend(routing.expert(row, layer, place));
        }
        prop_assert_eq!(&read, &ids);
        prop_assert_eq!(routing.max_expert(), ids.iter().copied().max());
        let compact = RoutedExperts::from_compact(&routing.to_compact(), MAX).unwrap();
        prop_assert_eq!(&compact, &routing);
        prop_assert_eq!(&RoutedExperts::from_npy(&compact.to_npy(), start, MAX).unwrap(), &routing);
        prop_assert_eq!((compact.to_npy().len() - ids.len() * routing.to_compact().dtype.bytes()) % 64, 0);
    }

    #[test]
    fn no_bytes_make_it_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..120, byte in any::<u8>()) {
        let _ = RoutedExperts::from_npy(&bytes, 0, MAX);
        bytes.splice(0..0, *b"\x93NUMPY\x01\x00\x40\x00{'descr': '<i4'");
        let _ = RoutedExperts::from_npy(&bytes, 0, MAX);
        let mut whole = decode_base64(FORTRAN.as_bytes()).unwrap();
        whole[at] = byte;
        let _ = RoutedExperts::from_npy(&whole, 0, MAX);
        let _ = convert(&String::from_utf8_lossy(&bytes), Form::Compact, 0, MAX);
    }
}
