//! How the kernel schedules the threads that read.

#![allow(unsafe_code, reason = "neither std nor rustix sets the policy of a thread")]

/// Lets the calling thread wait for its turn when it is woken, rather than interrupt the one that
/// woke it: that one has more to hand over. Where the system refuses, it goes on as it was.
#[cfg(target_os = "linux")]
pub fn wait_for_turns() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call only reads the parameters, and 0 is the thread itself.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &parameters) };
    if set != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "readers interrupt others");
    }
}

#[cfg(not(target_os = "linux"))]
pub fn wait_for_turns() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// The policy is the 41st value, and the name of the thread may have spaces.
    fn policy(stat: &str) -> Option<&str> {
        stat.rsplit_once(')')?.1.split_whitespace().nth(41 - 3)
    }

    #[test]
    fn one_thread_waits_for_its_turns_and_others_do_not() {
        let of_thread = || std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let waiting = std::thread::spawn(move || {
            super::wait_for_turns();
            of_thread()
        });
        assert_eq!(policy(&waiting.join().unwrap()), Some("3"), "SCHED_BATCH");
        assert_eq!(policy(&of_thread()), Some("0"), "SCHED_OTHER");
    }
}
