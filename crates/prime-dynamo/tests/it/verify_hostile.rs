//! Input that lies, does not end, or is none: named, at its place, inside bounded memory.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::command::Said;
use crate::verify::{directory, lines, record, text, verify};

/// Runs a shell line with the command as `$0`, so that a limit or a pipe can be put on it.
fn shell(script: &str, arguments: &[&str]) -> Said {
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_prime-dynamo")])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    Said { code: output.status.code().expect("not killed"), stdout: output.stdout, stderr: output.stderr }
}

/// Address space that 100 MB do not fit into beside the program.
const LIMITED: &str = r#"ulimit -v 131072; exec "$0" verify "$@""#;

#[test]
fn a_malformed_line_is_named_and_the_others_are_judged() {
    let good = record(None).to_string();
    let nan = good.replace("-0.25", "NaN");
    for (bad, words) in [
        (b"nonsense".to_vec(), "-:2: not a JSON object"),
        (nan.clone().into_bytes(), "-:2: NaN at byte"),
        (good.replace("-0.25", "-Infinity").into_bytes(), "-:2: -Infinity at byte"),
        (
            b"\xef\xbb\xbf".iter().chain(good.as_bytes()).copied().collect(),
            "-:2: it begins with a byte order mark",
        ),
        (good.as_bytes()[..good.len() / 2].to_vec(), "-:2: not a record: EOF"),
        (good.replace("tiny", "t\u{0}ny").into_bytes(), "-:2: "),
        ([good.as_bytes(), b" {}"].concat(), "-:2: not a record: trailing characters"),
        (
            good.replacen("\"status\":200", "\"status\":200,\"status\":200", 1).into_bytes(),
            "duplicate field `status`",
        ),
        (good.replacen("200", "99999", 1).into_bytes(), "invalid value: integer `99999`"),
        (
            format!("{{\"nodes\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000)).into_bytes(),
            "-:2: /nodes/0: ",
        ),
        (b"[]]".to_vec(), "-:2: "),
        (b"7".to_vec(), "-:2: not a JSON object"),
        (b"{nonsense".to_vec(), "-:2: not a record: key must be a string"),
        (record(Some(("", 1))).to_string().into_bytes(), "`attempt`: the run or the slot is empty"),
        (record(Some(("s", 0))).to_string().into_bytes(), "`attempt`: attempts are numbered from 1"),
        (
            good.replace("tiny", "t\u{202e}y").replacen("status", "sta\u{202e}tus", 1).into_bytes(),
            "\\u{202e}",
        ),
    ] {
        let input = [good.as_bytes(), b"\n", &bad, b"\n", good.as_bytes()].concat();
        let said = verify(&["--format", "json", "-"], &input);
        assert_eq!(said.code, 2, "{}", said.text());
        let places: Vec<_> = lines(&said).iter().map(|line| line["line"].as_u64()).collect();
        assert_eq!(places, [Some(1), Some(3)], "{}", said.text());
        assert!(said.text().contains(words), "{words}: {}", said.text());
        assert!(!said.text().contains('\u{202e}'));
    }
}

#[test]
fn broken_utf_8_is_named() {
    let good = record(None).to_string();
    let at = good.find("tiny").expect("the model");
    let mut bad = good.clone().into_bytes();
    bad[at] = 0xff;
    let said = verify(&["--format", "json", "-"], &[&bad[..], b"\n", good.as_bytes()].concat());
    assert_eq!((said.code, lines(&said).len()), (2, 1), "{}", said.text());
    assert!(said.text().contains("-:1: "), "{}", said.text());
}

#[test]
fn many_malformed_lines_of_a_file_are_counted() {
    let said = verify(&["-"], "x\n".repeat(250).as_bytes());
    assert_eq!(said.code, 2);
    assert_eq!(said.text().matches("-:").count(), 101, "a hundred lines, and the line that counts");
    assert!(said.text().contains("and 150 lines more"), "{}", said.text());
    assert!(said.text().contains("250 lines are no record"), "{}", said.text());
}

#[test]
fn a_line_over_the_cap_is_passed_over_without_being_held() {
    let root = directory("long");
    let (profile, input) = (root.join("p.toml"), root.join("long.jsonl"));
    fs::write(&profile, "[limits]\nmax_bytes = 8_388_608\n").expect("a file");
    let mut file = fs::File::create(&input).expect("a file");
    for _ in 0..100 {
        file.write_all(&vec![b'['; 1_000_000]).expect("room");
    }
    write!(file, "\n{}\n", record(None)).expect("room");
    let said = shell(LIMITED, &["--format", "json", "--profile", text(&profile), text(&input)]);
    assert_eq!((said.code, lines(&said).len()), (2, 1), "{}", said.text());
    assert!(said.text().contains("the line has 100000000 bytes, more than 8388608"), "{}", said.text());
}

#[test]
fn a_bomb_is_left_before_it_has_unfolded() {
    let root = directory("bomb");
    let profile = root.join("p.toml");
    fs::write(&profile, "[limits]\nmax_bytes = 1_048_576\n").expect("a file");
    // Two hundred members of a mebibyte without a line end: 200 MB from 200 kB.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&vec![b' '; 1 << 20]).expect("memory");
    let gzip = gzip.finish().expect("memory").repeat(200);
    let zstd = compress_to_vec(&vec![b' '; 1 << 20][..], CompressionLevel::Fastest).repeat(200);
    for (name, bytes) in [("bomb.gz", gzip), ("bomb.zst", zstd)] {
        let path = root.join(name);
        fs::write(&path, bytes).expect("a file");
        let said = shell(LIMITED, &["--profile", text(&profile), text(&path)]);
        assert_eq!(said.code, 2, "{}", said.text());
        assert!(said.text().contains("the line has not ended after"), "{}", said.text());
    }
}

#[test]
fn a_document_over_the_cap_is_refused() {
    let root = directory("document");
    let profile = root.join("p.toml");
    fs::write(&profile, "[limits]\nmax_bytes = 1_000\n").expect("a file");
    let input = format!("[\n{}]", "{},\n".repeat(1000));
    let said = verify(&["--profile", text(&profile), "-"], input.as_bytes());
    assert_eq!(said.code, 2);
    assert!(
        said.text().contains("a document over several lines, of more than 1000 bytes"),
        "{}",
        said.text()
    );
}

#[test]
fn a_file_that_was_cut_is_named_behind_what_it_holds() {
    let root = directory("cut");
    let plain: String = (0..50).map(|_| format!("{}\n", record(None))).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(plain.as_bytes()).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let zstd = compress_to_vec(plain.as_bytes(), CompressionLevel::Uncompressed);
    for (name, bytes) in [("gzip", gzip), ("zstd", zstd)] {
        let path = root.join(name);
        fs::write(&path, &bytes[..bytes.len() - 20]).expect("a file");
        // The next input is read all the same.
        let said = verify(&["--format", "json", text(&path), "-"], record(None).to_string().as_bytes());
        assert_eq!(said.code, 2, "{}", said.text());
        assert!(said.text().contains(&format!("the {name} data is cut short")), "{}", said.text());
        assert!(said.text().contains("after line "), "{}", said.text());
        assert!(said.text().contains("1 input was not read to the end"), "{}", said.text());
        assert_eq!(lines(&said).last().expect("a line")["source"], "-");
    }
}

#[test]
fn pipes_links_and_loops_are_not_followed() {
    let root = directory("loops");
    fs::write(root.join("a.jsonl"), record(None).to_string()).expect("a file");
    symlink(&root, root.join("loop")).expect("a link");
    symlink(root.join("a.jsonl"), root.join("b.jsonl")).expect("a link");
    symlink("c.jsonl", root.join("c.jsonl")).expect("a link");
    let pipe = root.join("pipe.jsonl");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let said = verify(&["--format", "json", text(&root)], b"");
    assert_eq!((said.code, lines(&said).len()), (0, 1), "{}", said.text());
    assert!(said.text().contains("b.jsonl: left out: a link"), "{}", said.text());
    assert!(said.text().contains("pipe.jsonl: left out: not a regular file"), "{}", said.text());
    let said = verify(&[text(&pipe)], b"");
    assert_eq!(said.code, 2);
    assert!(said.text().contains("write `-` and redirect it"), "{}", said.text());
}

#[test]
fn a_reader_that_goes_away_changes_no_exit_code() {
    let root = directory("closed");
    let input = root.join("in.jsonl");
    let mut bad = record(None);
    bad["response"]["choices"][0]["finish_reason"] = serde_json::json!("abort");
    let good: String = (0..2000).map(|_| format!("{}\n", record(None))).collect();
    fs::write(&input, format!("{good}{bad}\n")).expect("a file");
    let mut child = Command::new(env!("CARGO_BIN_EXE_prime-dynamo"))
        .args(["verify", "--format", "json", text(&input)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut byte = [0];
    child.stdout.take().expect("a pipe").read_exact(&mut byte).expect("a byte");
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_disk_that_is_full_is_told() {
    let root = directory("full");
    let input = root.join("in.jsonl");
    fs::write(&input, record(None).to_string()).expect("a file");
    let said = shell(r#"exec "$0" verify --format json "$@" > /dev/full"#, &[text(&input)]);
    assert_eq!(said.code, 2, "{}", said.text());
    assert!(said.text().contains("cannot be written to stdout"), "{}", said.text());
}
