//! Keeps people acting. What one of them waits for in vain, such as a terminal that never takes its prompt, ends that act and
//! no more: it is printed with what was on the screen and in the log, counted, and the person begins anew. So a run ends with
//! its scores, whatever happened in it.

use super::truth::Ledger;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a wait in vain begins to say so.
const IN_VAIN: &str = "timed out after ";
/// Of how many acts of a kind one may be given up. A run of two minutes has fewer.
const ONE_IN: usize = 50;
/// After how many failures of one kind of people they stop: what failed will go on failing.
const FAILED_MAX: usize = 20;

/// What became of all acts, by who acted.
pub(crate) struct Acts {
    records: Mutex<BTreeMap<&'static str, Record>>,
    /// Prints how an act failed.
    print: fn(&str),
}

#[derive(Clone, Debug, Default)]
struct Record {
    begun: usize,
    /// Those that waited in vain.
    given_up: usize,
    /// Those that failed in another way, each with the first line of how.
    failed: Vec<String>,
}

impl Acts {
    /// Nobody has acted yet.
    pub(crate) fn new(print: fn(&str)) -> Self {
        Self { records: Mutex::default(), print }
    }

    /// Has a person act until all is over. One whose act fails is made anew, and what was true of the sessions is unknown since
    /// it was last told. Returns the last one.
    pub(crate) fn go_on<P>(
        &self,
        who: &'static str,
        (ledger, over): (Option<&Ledger>, &AtomicBool),
        make: impl Fn() -> P,
        act: impl Fn(&mut P),
    ) -> Option<P> {
        let mut person = None;
        while !over.load(Ordering::Relaxed) && self.of(who, |record| record.given_up + record.failed.len()) < FAILED_MAX
        {
            self.of(who, |record| record.begun += 1);
            let acted = catch_unwind(AssertUnwindSafe(|| act(person.get_or_insert_with(&make))));
            if let Err(panic) = acted {
                self.fail(who, &*panic);
                ledger.inspect(|ledger| ledger.lose());
                // What it still holds may be what failed.
                let left = catch_unwind(AssertUnwindSafe(|| person = None));
                left.unwrap_or_else(|panic| self.fail(who, &*panic));
            }
        }
        person
    }

    /// Does something once. If that fails, it counts as an act of this person.
    pub(crate) fn once(&self, who: &'static str, act: impl FnOnce()) {
        self.of(who, |record| record.begun += 1);
        catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|panic| self.fail(who, &*panic));
    }

    fn of<T>(&self, who: &'static str, with: impl FnOnce(&mut Record) -> T) -> T {
        with(self.records.lock().unwrap().entry(who).or_default())
    }

    fn fail(&self, who: &'static str, panic: &(dyn Any + Send)) {
        let words =
            panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let words = words.unwrap_or("it does not say why");
        (self.print)(&format!("AN ACT FAILED, of {who}: {words}"));
        self.of(who, |record| {
            if words.starts_with(IN_VAIN) {
                record.given_up += 1;
            } else {
                record.failed.push(words.lines().next().unwrap_or_default().to_owned());
            }
        });
    }

    /// What there was too much of: acts that failed, or that were given up.
    pub(crate) fn faults(&self) -> Vec<String> {
        let record = self.records.lock().unwrap();
        let is_fault = |record: &Record| !record.failed.is_empty() || record.given_up > record.begun / ONE_IN;
        record.iter().filter(|(_, record)| is_fault(record)).map(|(who, record)| format!("{who}: {record:?}")).collect()
    }
}

impl fmt::Display for Acts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.records.lock().unwrap();
        let acts = record.iter().map(|(who, Record { begun, given_up, failed })| {
            format!("{who}: {begun} acts, {given_up} given up, {} failed", failed.len())
        });
        f.write_str(&acts.collect::<Vec<_>>().join("; "))
    }
}

#[test]
fn a_wait_in_vain_ends_an_act_and_no_more() {
    use super::truth::Truth;
    use std::cell::Cell;
    let (acts, ledger, over, made) = (Acts::new(|_| {}), Ledger::default(), AtomicBool::new(false), Cell::new(0));
    let make = || {
        made.set(made.get() + 1);
        0
    };
    let last = acts.go_on("one", (Some(&ledger), &over), make, |acted| {
        *acted += 1;
        ledger.note("a", 1, Truth::Is("idle"));
        assert!(made.get() != 1 || *acted < 3, "timed out after 1s waiting until it begins");
        over.store(made.get() == 2 && *acted == 100, Ordering::Relaxed);
    });
    assert_eq!((last, made.get(), acts.faults().len()), (Some(100), 2, 0), "{acts}");
    assert_eq!(ledger.end()["a"].iter().filter(|(_, truth)| *truth == Truth::Unknown).count(), 2, "and the end");
    over.store(false, Ordering::Relaxed);
    let last = acts.go_on("two", (None, &over), make, |_| panic!("a fault"));
    assert_eq!((last, acts.faults().len()), (None, 1), "{acts}");
}
