//! What a node answers to another node's order: the answer that its own control socket would have given, as JSON.

use baton_wire::Account;

use crate::operator::control::Response;

/// The answer that an order cannot be carried out, for this reason.
pub fn failed(why: &str) -> Response {
    Response::Failed {
        message: why.to_owned(),
    }
}

/// Makes an account with this response. If a reason is too long for a message, only its beginning is sent.
pub fn account(number: u64, response: &Response) -> Option<Account> {
    let whole = serde_json::to_string(response).ok()?;
    Account::new(number, whole).or_else(|| {
        let message: String = match response {
            Response::Failed { message } => message.chars().take(Account::MAX_TEXT / 8).collect(),
            _ => "its report does not fit one message; `baton status` there shows it".into(),
        };
        Account::new(number, serde_json::to_string(&failed(&message)).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_is_too_long_is_cut() {
        let account = account(1, &failed(&"\"é\n".repeat(1000))).expect("a message");
        let response = serde_json::from_str(account.text()).expect("still JSON");
        let Response::Failed { message } = response else {
            panic!("still a refusal");
        };
        assert!(message.starts_with("\"é\n"));
    }
}
