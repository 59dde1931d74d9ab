//! Four processes at once, in four workspaces and in one.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use backtrail::Store;

use super::{kept_files, read_files, workspace};
use crate::kit::{Cli, command};

#[test]
fn four_processes_in_four_workspaces_and_in_one_keep_all_of_it() {
    let cli = Cli::new();
    let roots: Vec<PathBuf> = (0..4).map(|n| cli.work().join(format!("w{n}"))).collect();
    for root in &roots {
        fs::create_dir(root).unwrap();
    }
    for round in 0..6 {
        for (n, root) in roots.iter().enumerate() {
            fs::write(root.join("own"), format!("{n} in {round}")).unwrap();
            fs::write(root.join(format!("all{round}")), vec![round; 50_000]).unwrap();
        }
        // One in each, and three more in the first.
        let at_once = roots.iter().chain([&roots[0]; 3]);
        let children: Vec<_> = at_once
            .map(|root| {
                let path = root.to_str().unwrap();
                let args = ["checkpoint", "--json", "--workspace", path];
                command(&cli.store(), &cli.work(), &args)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        for root in &roots {
            let last = workspace(&cli.store(), root).last_checkpoint();
            assert_eq!(kept_files(&last.unwrap().unwrap()), read_files(root));
        }
    }
    let store = Store::open(cli.store()).unwrap();
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!((report.workspaces, report.checkpoints), (4, 6 * 7));
    // Of four in one workspace, one saw each change.
    let first = workspace(&cli.store(), &roots[0]);
    let changed: Vec<u64> = first
        .checkpoints()
        .unwrap()
        .map(|c| c.unwrap().changed())
        .collect();
    let seen: usize = changed.iter().filter(|changed| **changed > 0).count();
    assert_eq!((changed.len(), seen), (24, 5), "{changed:?}");
    let verified = cli.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}
