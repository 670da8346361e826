//! The examples for Kubernetes and Airflow: every container is run as a process, against a real store and a real database.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::DateTime;
use serde::Deserialize;

use super::{Bucket, SECRET};
use crate::database::{self, Database};
use crate::fake::live::{DAY, LiveService, now};
use crate::harness::{Folder, Run, Service as _, python, trayscan};

/// What a scheduler starts.
#[derive(Debug, Deserialize)]
struct Container {
    name: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

/// A service with batches of the last ten days, a bucket and a database.
struct World {
    service: LiveService,
    bucket: Bucket,
    database: &'static Database,
    name: String,
    folder: Folder,
}

impl World {
    fn new() -> Option<Self> {
        let database = database::shared()?;
        let service = LiveService::start();
        let today = now();
        let hours = (1..240).map(|hour| today - hour * DAY / 24);
        service.state().fill("a", hours);
        Some(Self {
            service,
            bucket: Bucket::new("s3", "scheduled")?,
            database,
            name: database.fresh(),
            folder: Folder::new(),
        })
    }

    /// Runs a Python script that prints containers as JSON.
    fn containers(&self, run: &mut Run) -> Vec<Container> {
        let ended = run.current_dir(self.folder.at("")).output().expect(0);
        let last = ended.stdout.lines().last().unwrap();
        serde_json::from_str(last).unwrap()
    }

    /// Returns the variables that a user of the examples sets.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let [address, id, secret] = self.service.access();
        let lake = self.bucket.address("batches");
        vec![
            ("TRAYSCAN_BASE_URL", address),
            ("TRAYSCAN_CLIENT_ID", id),
            ("TRAYSCAN_CLIENT_SECRET", secret),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_ENDPOINT_URL", self.bucket.endpoint()),
            ("TRAYSCAN_LAKE", lake),
            (
                "TRAYSCAN_TABLE",
                self.database.address(&self.name, "batches"),
            ),
        ]
    }

    fn start(&self, container: &Container) {
        let args: Vec<&str> = container.args.iter().map(String::as_str).collect();
        let ended = trayscan(&args).envs(&container.env).output().expect(0);
        let [_, _, secret] = self.service.access();
        for secret in [&*secret, SECRET] {
            assert!(
                !ended.stderr.contains(secret),
                "{}: {ended:?}",
                container.name
            );
        }
        assert!(ended.result().is_object(), "{}: {ended:?}", container.name);
    }

    fn rows(&self, condition: &str) -> String {
        let sql = format!("select count(*) from batches where {condition}");
        self.database.sql(&self.name, &sql)
    }
}

fn example(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("examples")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

/// Resolves the environment of each container as Kubernetes does; replaces the values that a user would change.
const READ_CRON_JOB: &str = r"
import json, os, re, sys, yaml
config, claim, job = yaml.safe_load_all(open(sys.argv[1]))
config = config['data'] | {name: os.environ[name] for name in config['data'] if name in os.environ}
config |= {'LAKE': os.environ['TRAYSCAN_LAKE'] + '/year={year}/month={month}/batches.parquet', 'TABLE': os.environ['TRAYSCAN_TABLE']}
config['AWS_ENDPOINT_URL'] = os.environ['AWS_ENDPOINT_URL']
pod = job['spec']['jobTemplate']['spec']['template']['spec']
found = []
for container in pod['initContainers'] + pod['containers']:
    assert container['envFrom'] == [{'configMapRef': {'name': 'trayscan'}}]
    assert [mount['mountPath'] for mount in container['volumeMounts']] == ['/data']
    env = dict(config)
    for variable in container['env']:
        assert variable['valueFrom']['secretKeyRef']['name'] == 'trayscan'
        env[variable['name']] = os.environ.get(variable['name'], 'unused')
    args = [re.sub(r'\$\((\w+)\)', lambda name: env[name[1]], arg) for arg in container['args']]
    args = [arg.replace('/data/', os.getcwd() + '/') for arg in args]
    found.append({'name': container['name'], 'args': args, 'env': env})
print(json.dumps(found))
";

#[test]
#[ignore = "installs a YAML reader from PyPI"]
fn the_cron_job_keeps_an_archive_a_lake_and_a_table() {
    let Some(programs) = python("yaml", "pyyaml", "yaml") else {
        return;
    };
    let Some(world) = World::new() else { return };
    let mut read = Run::new(programs.join("python"));
    read.args(["-c", READ_CRON_JOB, &example("kubernetes/cronjob.yaml")]);
    let containers = world.containers(read.envs(world.variables()));
    let names: Vec<&str> = containers
        .iter()
        .map(|container| &*container.name)
        .collect();
    assert_eq!(names, ["sync", "lake", "table", "status"]);
    for _night in 0..2 {
        for container in &containers {
            world.start(container);
        }
        let objects = world.bucket.list();
        assert!(
            objects.iter().any(|name| name.ends_with("/_manifest.json")),
            "{objects:?}"
        );
        assert!(
            objects
                .iter()
                .any(|name| name.ends_with("/batches.parquet")),
            "{objects:?}"
        );
        // Batches of the last seven days, one per hour.
        let rows: u32 = world.rows("true").parse().unwrap();
        assert!((166..=168).contains(&rows), "{rows}");
    }
}

/// Loads the file as Airflow does, and renders the tasks of one day.
const READ_DAG: &str = r"
import json, sys
import pendulum
from airflow.models.dagbag import DagBag
folder, day = sys.argv[1:]
bag = DagBag(folder, include_examples=False)
assert not bag.import_errors, bag.import_errors
[dag] = bag.dags.values()
found = []
for task in dag.tasks:
    task.render_template_fields({'data_interval_start': pendulum.parse(day)}, dag.get_template_env())
    env = task.environment | task._private_environment
    found.append({'name': task.task_id, 'args': task.command, 'env': env})
print(json.dumps(found))
";

#[test]
#[ignore = "installs Airflow from PyPI"]
fn the_tasks_of_airflow_export_their_day_again_and_again() {
    let packages = "'apache-airflow>=3.1,<3.2' apache-airflow-providers-docker";
    let modules = "airflow.sdk, airflow.providers.docker";
    let Some(programs) = python("airflow", packages, modules) else {
        return;
    };
    let Some(world) = World::new() else { return };
    let day = DateTime::from_timestamp(now() - 2 * DAY, 0).unwrap();
    let day = &day.format("%Y-%m-%d").to_string();
    let mut read = Run::new(programs.join("python"));
    read.args(["-c", READ_DAG, &example("airflow"), day]);
    read.env("AIRFLOW_HOME", world.folder.at("airflow"));
    let containers = world.containers(read.envs(world.variables()));
    assert_eq!(containers.len(), 2, "{containers:?}");
    for _attempt in 0..2 {
        for container in &containers {
            world.start(container);
        }
        let object = format!("batches/day={day}/batches.parquet");
        assert_eq!(world.bucket.list(), [object]);
        assert_eq!(
            world.rows(&format!("batch_creation_date::date = '{day}'")),
            "24"
        );
        assert_eq!(world.rows("true"), "24");
    }
}
