//! The cluster under test, and how each fault is injected and undone.

use super::deck::{Fault, Kind, Loss, Part};
use super::traffic::Places;
use crate::cluster::roles::{Role, Setup};
use crate::cluster::servers::Servers;
use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use std::time::Duration;

const REDIS: &str = "redis";
const CATALOG: &str = "mariadb";

/// All processes of a run.
pub struct Cluster {
    pub servers: Servers,
    pub setup: Setup,
    /// Two writers, two readers, the portal: the processes that clients use.
    pub roles: Vec<Role>,
    /// A third writer that joins and leaves.
    extra: Role,
}

/// A process or a server that a fault takes away.
enum Lost {
    Role(usize),
    Server(String),
}

pub const WRITERS: [usize; 2] = [0, 1];
pub const READERS: [usize; 2] = [2, 3];
pub const PORTAL: usize = 4;

impl Cluster {
    pub fn new(servers: Servers, setup: Setup) -> Result<Self> {
        let roles = vec![
            // The first keeps its partitions during a quick restart, the second does not.
            Role::new("writer-1", "writer", &[("CLUSTER__INSTANCE", "writer-1")])?,
            Role::new("writer-2", "writer", &[])?,
            Role::new("reader-1", "reader", &[("CLUSTER__INSTANCE", "reader-1")])?,
            Role::new("reader-2", "reader", &[("CLUSTER__INSTANCE", "reader-2")])?,
            Role::new("portal-1", "portal", &[("CLUSTER__INSTANCE", "portal-1")])?,
        ];
        Ok(Self { servers, setup, roles, extra: Role::new("writer-3", "writer", &[])? })
    }

    /// The addresses of the processes, for clients.
    pub fn places(&self) -> Places {
        let place = |index: usize| (index, self.roles[index].target());
        Places {
            writers: WRITERS.map(place).to_vec(),
            readers: READERS.map(place).to_vec(),
            portal: place(PORTAL),
        }
    }

    /// Starts every role that is not running, and waits until all are ready.
    pub fn start(&mut self) -> Result<()> {
        for role in &mut self.roles {
            role.start(&self.setup)?;
        }
        self.wait_ready()
    }

    pub fn wait_ready(&mut self) -> Result<()> {
        self.roles.iter_mut().try_for_each(|role| role.wait_ready(&self.setup))
    }

    /// Fails if a process has exited that no fault stopped.
    pub fn check(&mut self) -> Result<()> {
        self.roles.iter_mut().try_for_each(|role| role.check(&self.setup))
    }

    /// The target of a fault.
    pub fn target(&self, fault: &Fault) -> String {
        match (fault.kind, self.lost(fault)) {
            (Kind::Rebalance, _) => self.extra.name.clone(),
            (Kind::WritesTimeOut, _) => self.quorum(fault).join(" and "),
            (Kind::RolesRestarted, _) => "all roles".to_owned(),
            (Kind::AllRestarted, _) => "all roles and servers".to_owned(),
            (_, Lost::Role(role)) => self.roles[role].name.clone(),
            (_, Lost::Server(name)) => name,
        }
    }

    /// What a fault of a single part takes away.
    fn lost(&self, fault: &Fault) -> Lost {
        match fault.kind.part() {
            Part::Writer => Lost::Role(WRITERS[fault.which % WRITERS.len()]),
            Part::Reader => Lost::Role(READERS[fault.which % READERS.len()]),
            Part::Portal | Part::Much => Lost::Role(PORTAL),
            Part::Node => Lost::Server(Servers::node(fault.which % self.servers.nodes())),
            Part::Broker => Lost::Server(self.servers.broker(fault.which)),
            Part::Redis => Lost::Server(REDIS.to_owned()),
            Part::Catalog => Lost::Server(CATALOG.to_owned()),
        }
    }

    /// Enough nodes that the others do not form a quorum.
    fn quorum(&self, fault: &Fault) -> Vec<String> {
        let nodes = self.servers.nodes();
        (0..nodes.div_ceil(2)).map(|number| Servers::node((fault.which + number) % nodes)).collect()
    }

    /// Injects the fault.
    pub fn begin(&mut self, fault: &Fault) -> Result<()> {
        match fault.kind {
            Kind::Rebalance => {
                self.extra.start(&self.setup)?;
                return self.extra.wait_ready(&self.setup);
            }
            Kind::WritesTimeOut => {
                return self.quorum(fault).iter().try_for_each(|node| self.servers.pause(node));
            }
            Kind::RolesRestarted | Kind::AllRestarted => {
                return self.roles.iter_mut().try_for_each(Role::kill);
            }
            _ => {}
        }

        match (self.lost(fault), fault.kind.loss()) {
            (Lost::Role(role), Loss::Paused) => self.roles[role].pause(),
            (Lost::Role(role), Loss::Stopped) => self.roles[role].terminate(),
            (Lost::Role(role), _) => self.roles[role].kill(),
            (Lost::Server(name), Loss::Paused) => self.servers.pause(&name),
            (Lost::Server(name), Loss::Stopped) => self.servers.stop(&name),
            (Lost::Server(name), _) => self.servers.kill(&name),
        }
    }

    /// Undoes the fault. The process then runs again, though it may not be ready.
    pub fn end(&mut self, fault: &Fault, random: &mut StdRng) -> Result<()> {
        match fault.kind {
            Kind::Rebalance => return self.extra.stop(),
            Kind::WritesTimeOut => {
                return self.quorum(fault).iter().try_for_each(|node| self.servers.resume(node));
            }
            Kind::RolesRestarted => return self.start_shuffled(random),
            Kind::AllRestarted => return self.restart_all(random),
            _ => {}
        }

        match (self.lost(fault), fault.kind.loss()) {
            (Lost::Role(role), Loss::Paused) => self.roles[role].resume(),
            (Lost::Role(role), _) => {
                self.roles[role].wait_stopped()?;
                self.roles[role].start(&self.setup)
            }
            (Lost::Server(name), Loss::Paused) => self.servers.resume(&name),
            (Lost::Server(name), _) => self.servers.restart(&name),
        }
    }

    fn start_shuffled(&mut self, random: &mut StdRng) -> Result<()> {
        let mut order: Vec<usize> = (0..self.roles.len()).collect();
        order.shuffle(random);
        order.into_iter().try_for_each(|role| self.roles[role].start(&self.setup))
    }

    /// Restarts the roles while the servers are down, so that they wait for them. Every server is
    /// killed and restarted, one after another.
    fn restart_all(&mut self, random: &mut StdRng) -> Result<()> {
        let mut names: Vec<String> =
            self.servers.states()?.into_iter().map(|(name, _)| name).collect();
        names.shuffle(random);

        let (last, first) = names.split_at(names.len() / 2);
        for name in first {
            self.servers.kill(name)?;
        }
        self.start_shuffled(random)?;
        std::thread::sleep(Duration::from_millis(500));

        // The first Cassandra nodes are restarted first: the others do not start without one
        // of them.
        let mut back = first.to_vec();
        back.sort();
        back.iter().try_for_each(|name| self.servers.restart(name))?;
        self.servers.wait_for_nodes()?;

        for name in last {
            self.servers.kill(name)?;
            self.servers.restart(name)?;
            self.servers.wait_for_nodes()?;
        }

        Ok(())
    }
}
