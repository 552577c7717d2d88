//! What a whole answer is judged to be.

use plane_http::{CallError, Reply};

fn reply(status: u16, body: &str) -> Reply {
    Reply {
        url: "http://10.0.0.1:8081/x".to_owned(),
        status,
        content_type: Some("text/plain".to_owned()),
        body: body.to_owned().into(),
    }
}

fn documented(status: u16, body: &str) -> String {
    match reply(status, body).success_object().unwrap_err() {
        CallError::Documented { status: found, message, .. } if found == status => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn plain_text_json_is_json() {
    assert_eq!(reply(200, " {\"a\": 1}\n").success_object().unwrap()["a"], 1);
    assert_eq!(reply(299, "{}").success_object().unwrap().len(), 0);
}

#[test]
fn empty_success_is_a_success_without_an_object() {
    assert!(reply(200, "").success().is_ok());
    assert!(matches!(reply(200, "").success_object(), Err(CallError::UnreadableBody { status: 200, .. })));
}

#[test]
fn body_that_is_no_object_is_unreadable() {
    let deep = "[".repeat(100_000);
    for body in ["[]", "1", "null", "\"x\"", "{", "{} x", "<html>", "{\"a\": NaN}", "\u{feff}{}", &deep] {
        let error = reply(200, body).success_object().unwrap_err();
        assert!(matches!(error, CallError::UnreadableBody { .. }), "{error:?}");
        assert!(error.to_string().len() < 2000);
    }
}

#[test]
fn body_that_is_not_utf8_is_unreadable() {
    let reply = Reply { body: (&b"{\"a\": \"\xff\"}"[..]).into(), ..reply(200, "") };
    assert!(matches!(reply.success_object(), Err(CallError::UnreadableBody { .. })));
}

#[test]
fn key_that_occurs_twice_is_unreadable() {
    for body in [
        "{\"status\": \"error\", \"status\": \"ok\"}",
        "{\"a\": [{\"b\": 1, \"b\": 1}]}",
        "{\"a\": 1, \"\\u0061\": 2}",
    ] {
        let error = reply(200, body).success_object().unwrap_err();
        assert!(
            matches!(&error, CallError::UnreadableBody { why, .. } if why.contains("occurs twice")),
            "{error:?}"
        );
    }
}

#[test]
fn reason_of_an_error_is_found_where_servers_put_it() {
    assert_eq!(documented(400, "{\"error\": \"no\"}"), "no");
    assert_eq!(
        documented(404, "{\"error\": {\"message\": \"no model\", \"type\": \"x\", \"code\": 404}}"),
        "no model"
    );
    assert_eq!(
        documented(422, "{\"detail\": [{\"loc\": [\"body\"], \"msg\": \"field required\"}]}"),
        "field required"
    );
    assert_eq!(documented(500, "{\"status\": \"error\", \"message\": \"boom\"}"), "boom");
    assert_eq!(documented(503, "\"busy\""), "busy");
    assert_eq!(documented(599, "{\"success\": false}"), "{\"success\":false}");
}

#[test]
fn reason_of_an_error_is_cleaned_and_short() {
    let message = documented(500, "{\"message\": \"\\u001b[31mred\\u202e\\n\"}");
    assert!(message.chars().all(|c| (' '..='~').contains(&c)), "{message:?}");
    assert!(message.contains("red"));
    assert!(documented(500, &format!("{{\"message\": \"{}\"}}", "x".repeat(10_000))).len() <= 512);
}

#[test]
fn error_without_json_is_unexpected() {
    for status in [400, 502, 599] {
        let error = reply(status, "<html>\u{1b}[31m").success_object().unwrap_err();
        let CallError::Unexpected { excerpt, .. } = &error else { panic!("{error:?}") };
        assert!(excerpt.starts_with("<html>") && !excerpt.contains('\u{1b}'));
        assert_eq!(error.status(), Some(status));
        assert!(!error.is_retryable() && !error.is_never_sent());
    }
}

#[test]
fn status_outside_success_redirect_and_error_is_unexpected() {
    for status in [101, 199, 600, 999] {
        let error = reply(status, "{\"message\": \"x\"}").success().unwrap_err();
        assert!(matches!(error, CallError::Unexpected { .. }), "{error:?}");
    }
}
