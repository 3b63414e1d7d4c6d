//! What a program has set on its socket.

use baton_abi::{
    APP_OPTION_KEEP_IDLE, APP_OPTION_KEEP_INTERVAL, APP_OPTION_KEEP_PROBES, APP_OPTION_KEEPALIVE,
    APP_OPTION_NODELAY, APP_OPTION_RECEIVE_BUFFER, APP_OPTION_SEND_BUFFER, APP_OPTION_USER_TIMEOUT,
    AppOptions as Raw,
};

/// Options that matter where the client is. An option that is `None` was left as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppOptions {
    /// TCP_NODELAY.
    pub nodelay: Option<bool>,
    /// SO_KEEPALIVE.
    pub keepalive: Option<bool>,
    /// TCP_KEEPIDLE, seconds.
    pub keep_idle: Option<u32>,
    /// TCP_KEEPINTVL, seconds.
    pub keep_interval: Option<u32>,
    /// TCP_KEEPCNT.
    pub keep_probes: Option<u32>,
    /// TCP_USER_TIMEOUT, milliseconds.
    pub user_timeout: Option<u32>,
    /// SO_SNDBUF, bytes.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes.
    pub receive_buffer: Option<u32>,
}

pub(super) fn options(raw: &Raw) -> AppOptions {
    let is_given = |option: u32| u32::from(raw.given) & option != 0;
    let switch = |option| is_given(option).then_some(u32::from(raw.on) & option != 0);
    // `enum app_option`: the numbers' bits are in their order.
    let number = |option: u32| {
        let at = option.trailing_zeros() - APP_OPTION_KEEP_IDLE.trailing_zeros();
        is_given(option).then_some(raw.number[at as usize])
    };
    AppOptions {
        nodelay: switch(APP_OPTION_NODELAY),
        keepalive: switch(APP_OPTION_KEEPALIVE),
        keep_idle: number(APP_OPTION_KEEP_IDLE),
        keep_interval: number(APP_OPTION_KEEP_INTERVAL),
        keep_probes: number(APP_OPTION_KEEP_PROBES),
        user_timeout: number(APP_OPTION_USER_TIMEOUT),
        send_buffer: number(APP_OPTION_SEND_BUFFER),
        receive_buffer: number(APP_OPTION_RECEIVE_BUFFER),
    }
}
