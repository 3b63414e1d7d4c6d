//! Parses the head of a message.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{
    Error, HEADER, Head, Hello, MAX_ITEMS, Redirect,
    head::{magic_address, magic_port},
    items::Items,
    opcode,
};

/// The result of parsing a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head is not whole: at least this many bytes are needed, counted from its beginning.
    Need(usize),
    /// The head is whole.
    Whole {
        /// The head.
        head: Head,
        /// The length of the head in bytes.
        length: usize,
        /// The length of the message behind it in bytes.
        slen: u32,
    },
}

/// Parses the head that `bytes` begin with. Its message may have at most `limit` bytes.
///
/// # Errors
/// All of [`Error`] except [`Error::CutOff`]; each as soon as the bytes that show it have arrived.
pub fn parse(bytes: &[u8], limit: u32) -> Result<Parsed, Error> {
    if let Some(slen) = Head::normal_slen(bytes)
        && slen <= limit
    {
        return Ok(whole(Head::Normal, HEADER, slen));
    }
    if let Some(known) = bytes.first_chunk::<2>() {
        check_opcode(u16::from_be_bytes(*known))?;
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(Parsed::Need(HEADER));
    };
    let [o0, o1, p0, p1, a0, a1, a2, a3, s0, s1, s2, s3] = *header;
    let opcode = u16::from_be_bytes([o0, o1]);
    let port = u16::from_be_bytes([p0, p1]);
    let address = Ipv4Addr::new(a0, a1, a2, a3);
    let slen = u32::from_be_bytes([s0, s1, s2, s3]);
    if slen > limit {
        return Err(Error::TooLong { slen, limit });
    }
    match opcode {
        opcode::REDIRECT => {
            let head = redirect(port, address, slen, Items::default())?;
            return Ok(whole(head, HEADER, slen));
        }
        opcode::HELLO_1 | opcode::WELCOME_1
            if (port, address, slen) != (magic_port(), magic_address(), 0) =>
        {
            return Err(Error::Magic);
        }
        _ => {}
    }

    let Some((count, rest)) = rest.split_first_chunk::<2>() else {
        return Ok(Parsed::Need(HEADER + 2));
    };
    let count = usize::from(u16::from_be_bytes(*count));
    if count > MAX_ITEMS {
        return Err(Error::Item { kind: 0 });
    }
    let length = HEADER + 2 + count;
    let Some(items) = rest.get(..count) else {
        return Ok(Parsed::Need(length));
    };
    let items = Items::read(items)?;
    let head = match opcode {
        opcode::REDIRECT_1 => redirect(port, address, slen, items)?,
        opcode::HELLO_1 => Head::Hello(Hello {
            token: items.token,
            fell_back_from: items.fell_back_from,
        }),
        _ => Head::Welcome,
    };
    Ok(whole(head, length, slen))
}

fn check_opcode(opcode: u16) -> Result<(), Error> {
    match opcode {
        opcode::NORMAL
        | opcode::REDIRECT
        | opcode::REDIRECT_1
        | opcode::HELLO_1
        | opcode::WELCOME_1 => Ok(()),
        _ => Err(Error::Opcode { opcode }),
    }
}

fn redirect(port: u16, address: Ipv4Addr, slen: u32, items: Items) -> Result<Head, Error> {
    let address = match items.address6 {
        None => IpAddr::V4(address),
        // There is only one way to write a target.
        Some(address6) if address.is_unspecified() && address6.to_ipv4_mapped().is_none() => {
            IpAddr::V6(address6)
        }
        Some(_) => return Err(Error::Target),
    };
    if port == 0 || address.is_unspecified() {
        return Err(Error::Target);
    }
    Ok(Head::Redirect(Redirect {
        target: SocketAddr::new(address, port),
        answers: slen > 0 || items.answers,
        token: items.token,
        taken: items.taken,
    }))
}

const fn whole(head: Head, length: usize, slen: u32) -> Parsed {
    Parsed::Whole { head, length, slen }
}
