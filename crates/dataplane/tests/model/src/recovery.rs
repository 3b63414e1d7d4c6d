//! That nothing is dropped for good: a client that sends again what it has no answer to gets all of its answers, or its
//! connection is ended.

use crate::{
    packet::{ACK, PSH},
    pool::SERVERS,
    world::{Checked, World},
};

/// So often a client sends again. It takes a few for each of its requests.
const ROUNDS: usize = 20;

impl World<'_> {
    /// From now on nothing is lost, and everybody does what is theirs to do. With `all` clients send again as much as goes
    /// into a segment, else request by request.
    pub fn recover(&mut self, all: bool) -> Checked {
        for index in 0..self.connections.len() {
            for round in 0.. {
                if !self.connections[index].must_recover() {
                    break;
                }
                if round == ROUNDS {
                    return Err(format!("connection {index} gets no further"));
                }
                self.try_again(index, all)?;
            }
        }
        Ok(())
    }

    fn try_again(&mut self, index: usize, all: bool) -> Checked {
        // Clients wait longer each time.
        self.cs.age(self.connections[index].client);
        self.repeat(index)?;
        self.settle()?;
        let connection = &mut self.connections[index];
        for server in 0..SERVERS {
            while connection.answer(server, 1, None, false) {}
        }
        connection.hear(1);
        self.tell(|world| format!("      heard {}", world.connections[index].heard()));
        let connection = &self.connections[index];
        if !connection.must_recover() {
            return Ok(());
        }
        let packet = match connection.first_unread(all) {
            Some(range) => connection.packet(range, ACK | PSH),
            None => connection.empty(ACK),
        };
        self.send(index, packet)?;
        self.settle()
    }
}
