//! A terminal of 80 by 24 with a program in it.

use std::{
    fs::File,
    io::Read as _,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use nix::{
    pty::{Winsize, openpty},
    sys::termios::{Termios, tcgetattr},
};

/// As long as a slow machine may need; it is spent only by what fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Pty {
    child: Child,
    keys: OwnedFd,
    /// Our end of what the program has: its settings outlive it.
    terminal: OwnedFd,
    before: Termios,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Pty {
    pub fn start(command: &mut Command) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let end = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let mut screen = File::from(pty.master.try_clone().unwrap());
        let heard = Arc::clone(&said);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(bytes @ 1..) = screen.read(&mut buffer) {
                heard.lock().unwrap().extend(&buffer[..bytes]);
            }
        });
        Self {
            child,
            keys: pty.master,
            terminal: pty.slave,
            before,
            said,
        }
    }

    /// All that the program has written.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).into_owned()
    }

    /// The same as words: blanks are not written where the cursor jumps over them.
    pub fn words(&self) -> String {
        let said = self.said();
        let mut words = String::new();
        for (index, part) in said.split("\x1b[").enumerate() {
            let letter = |c: char| c.is_ascii_alphabetic();
            let begin = if index == 0 {
                0
            } else {
                part.find(letter).map_or(0, |at| at + 1)
            };
            words += &part[begin..];
            words.push(' ');
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.said().contains(text) && !self.words().contains(text) {
            assert!(Instant::now() < end, "no {text:?} in {:?}", self.words());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn press(&self, keys: &str) {
        nix::unistd::write(&self.keys, keys.as_bytes()).unwrap();
    }

    pub fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.child.id() as i32)
    }

    /// Whether the terminal's settings are others than before the program began.
    pub fn is_changed(&self) -> bool {
        tcgetattr(&self.terminal).unwrap() != self.before
    }

    /// How the program ended, which it does by now; the terminal must be as it was.
    #[track_caller]
    pub fn ended(mut self) -> (ExitStatus, String) {
        let status = self.wait();
        self.wait_for(LEAVE);
        let said = self.said();
        assert!(said.rfind(LEAVE) > said.rfind(ENTER), "{said:?}");
        assert!(
            said.rfind(SHOW_CURSOR) > said.rfind(HIDE_CURSOR),
            "{said:?}"
        );
        (status, said)
    }

    /// The same of a program that has left the terminal alone.
    #[track_caller]
    pub fn ended_untouched(mut self) -> (ExitStatus, String) {
        let status = self.wait();
        let said = self.said();
        assert!(!said.contains(ENTER), "{said:?}");
        (status, said)
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(!self.is_changed(), "settings are left behind");
                return status;
            }
            if Instant::now() >= end {
                self.child.kill().unwrap();
                panic!("it does not end: {:?}", self.said());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The alternate screen, and the cursor (xterm's control sequences).
pub const ENTER: &str = "\x1b[?1049h";
pub const LEAVE: &str = "\x1b[?1049l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
