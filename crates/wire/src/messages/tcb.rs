//! The part of a TCB entry that travels: facts that no later packet of the client repeats.

use std::num::NonZeroU16;

use baton_abi::{LCCP_TCB_AWARE, LCCP_TCB_SACK, LCCP_TCB_WSCALE, LccpTcb};

use super::numbered::byte;
use crate::Error;

/// What a DS must know besides the client's packet to make a socket of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcbPart {
    /// The largest segment that the client takes, bytes.
    pub mss: NonZeroU16,
    /// The window scales, if the client offered one: RFC 7323 scales both directions or none.
    pub scales: Option<WindowScales>,
    /// Whether the client takes selective acknowledgements.
    pub sack: bool,
    /// Whether the client sends to its data server itself, once that server has told it its address.
    pub aware: bool,
    /// How many DSs have refused this request before.
    pub attempt: u8,
    /// The last owner's congestion window, segments; 0: begin like a new connection.
    pub cwnd: u16,
    /// A value whose meaning depends on the message: see `be_resume` of `struct lccp_tcb` in `bpf/abi/lccp.h`. Mostly
    /// 0.
    pub resume: u64,
}

/// The window scales of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowScales {
    /// The scale that the client announced in its SYN.
    pub client: WindowScale,
    /// The scale that the SYN-ACK announced.
    pub cluster: WindowScale,
}

impl WindowScales {
    /// The scales in the bytes of a message or a map; `None` if `options` (`LCCP_TCB_*`) lack window scaling.
    ///
    /// # Errors
    ///
    /// A scale is above [`WindowScale::MAX`].
    pub fn told(options: u8, client: u8, cluster: u8) -> Result<Option<Self>, Error> {
        if u32::from(options) & LCCP_TCB_WSCALE == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            client: client.try_into()?,
            cluster: cluster.try_into()?,
        }))
    }
}

/// A TCP window scale: a shift of 0 to 14 (RFC 7323, 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WindowScale(u8);

impl WindowScale {
    /// The largest shift that is allowed.
    pub const MAX: u8 = 14;

    /// The shift in bits.
    pub const fn shift(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for WindowScale {
    type Error = Error;

    fn try_from(shift: u8) -> Result<Self, Error> {
        if shift > Self::MAX {
            return Err(Error::WindowScale { found: shift });
        }
        Ok(Self(shift))
    }
}

impl From<TcbPart> for LccpTcb {
    fn from(tcb: TcbPart) -> Self {
        let option = |set: bool, option: u8| if set { option } else { 0 };
        let scale = |pick: fn(WindowScales) -> WindowScale| {
            tcb.scales.map_or(0, |scales| pick(scales).shift())
        };
        Self {
            be_mss: tcb.mss.get().to_be(),
            snd_wscale: scale(|scales| scales.client),
            rcv_wscale: scale(|scales| scales.cluster),
            options: option(tcb.sack, const { byte(LCCP_TCB_SACK) })
                | option(tcb.scales.is_some(), const { byte(LCCP_TCB_WSCALE) })
                | option(tcb.aware, const { byte(LCCP_TCB_AWARE) }),
            attempt: tcb.attempt,
            be_cwnd: tcb.cwnd.to_be(),
            be_resume: tcb.resume.to_be(),
        }
    }
}

/// Reads the travelling part. Returns `None` if the MSS is zero or a scale is above 14. Option bits without a meaning
/// are ignored.
pub(crate) fn tcb_from_wire(tcb: &LccpTcb) -> Option<TcbPart> {
    Some(TcbPart {
        mss: NonZeroU16::new(u16::from_be(tcb.be_mss))?,
        scales: WindowScales::told(tcb.options, tcb.snd_wscale, tcb.rcv_wscale).ok()?,
        sack: u32::from(tcb.options) & LCCP_TCB_SACK != 0,
        aware: u32::from(tcb.options) & LCCP_TCB_AWARE != 0,
        attempt: tcb.attempt,
        cwnd: u16::from_be(tcb.be_cwnd),
        resume: u64::from_be(tcb.be_resume),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_fourteen() {
        assert_eq!(WindowScale::try_from(14).unwrap().shift(), 14);
        assert_eq!(
            WindowScale::try_from(15),
            Err(Error::WindowScale { found: 15 })
        );
    }

    #[test]
    fn scales_count_only_where_the_option_says_so() {
        let bare = LccpTcb {
            be_mss: 536u16.to_be(),
            snd_wscale: 200,
            rcv_wscale: 200,
            ..LccpTcb::default()
        };
        assert_eq!(tcb_from_wire(&bare).unwrap().scales, None);
        assert_eq!(
            tcb_from_wire(&LccpTcb {
                options: LCCP_TCB_WSCALE as u8,
                ..bare
            }),
            None
        );
    }

    #[test]
    fn a_zero_mss_is_no_tcb() {
        assert_eq!(tcb_from_wire(&LccpTcb::default()), None);
    }
}
