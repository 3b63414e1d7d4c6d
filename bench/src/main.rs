//! Measures baton beside direct access to the same servers and beside HAProxy, in one run on one machine. It prints
//! Markdown and writes it to bench/results/. It judges nothing: see bench/README.md.

mod bpf;
mod chance;
mod competitor;
mod cpu;
mod direct;
mod flood;
mod handover;
mod handover_latency;
mod https;
mod https_client;
mod lab;
mod latency;
mod locality;
mod loss;
mod machine;
mod memory;
mod migration;
mod options;
mod processes;
mod report;
mod rounds;
mod rules;
mod saps;
mod snmp;
mod statistics;
mod throughput;
mod tls;
mod wrk;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;

use crate::lab::BenchLab;
use crate::options::Options;
use crate::report::Report;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match options.echo {
        Some(port) => saps::echo(port),
        None => run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let mut report = Report::new(machine::describe()?);
    if options.memory {
        report.add(memory::measure(options.flows)?.markdown());
        return report.write(options);
    }
    if options.handover || options.loss {
        let lab = BenchLab::raise(options)?;
        if options.handover {
            report.add(handover::measure(&lab, options)?);
            report.add(handover_latency::measure(
                &lab,
                options,
                handover_latency::HTTP,
            )?);
        }
        if options.loss {
            report.add(loss::measure(&lab, options)?);
        }
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.flood {
        report.add(flood::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.locality {
        report.add(locality::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.direct {
        report.add(direct::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.migrate {
        report.add(migration::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.saps {
        report.add(saps::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.tls {
        report.add(tls::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.https {
        report.add(https::measure(options)?);
        report.add(machine::load_after()?);
        return report.write(options);
    }
    if options.rules {
        let lab = BenchLab::raise(options)?;
        report.add(rules::measure(&lab, options)?);
        return report.write(options);
    }
    // The memory is measured before the lab is up, because the lab's own tables would change the result.
    let memory = memory::measure(options.flows)?;
    let lab = BenchLab::raise(options)?;
    let measured = throughput::measure(&lab, options)?;
    report.add(throughput::markdown(&measured));
    report.add(throughput::cpu_markdown(&measured));
    if options.loads.is_empty() {
        report.add(handover::measure(&lab, options)?);
        report.add(handover_latency::measure(
            &lab,
            options,
            handover_latency::HTTP,
        )?);
        report.add(loss::measure(&lab, options)?);
    }
    report.add(latency::markdown(&latency::measure(&lab, options)?));
    report.add(rules::measure(&lab, options)?);
    report.add(bpf::markdown(&bpf::measure(&lab, options)?));
    report.add(memory.markdown());
    report.add(machine::load_after()?);
    report.write(options)
}
