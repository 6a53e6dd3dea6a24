//! What a plugin declares about itself.

use crate::context::Context;
use crate::error::Result;
use crate::json::Json;

/// The version of the functions this kit uses.
const PROTOCOL: i32 = 5;

/// Handles one event. An error it returns ends the execution as failed.
pub type Handler = fn(&Context) -> Result;

/// A field of the configuration, which the administrator fills in at the installation; made by [`string`].
#[derive(Clone, Debug)]
pub struct ConfigField {
    name: &'static str,
    description: &'static str,
    required: bool,
    sensitive: bool,
}

/// Makes a text field, which a handler reads with `ctx.config(name)`.
pub fn string(name: &'static str, description: &'static str) -> ConfigField {
    ConfigField { name, description, required: false, sensitive: false }
}

impl ConfigField {
    /// The plugin cannot be installed without it.
    pub fn required(mut self) -> ConfigField {
        self.required = true;
        self
    }

    /// A secret, stored encrypted and never shown again.
    pub fn sensitive(mut self) -> ConfigField {
        self.sensitive = true;
        self
    }
}

/// Something a plugin asks its host for; made by [`kv`], [`database`] and their like.
#[derive(Clone, Debug)]
pub struct Requirement {
    kind: &'static str,
    description: &'static str,
    name: Option<&'static str>,
    target: Option<&'static str>,
    config: Vec<ConfigField>,
}

fn requirement(kind: &'static str, description: &'static str) -> Requirement {
    Requirement { kind, description, name: None, target: None, config: Vec::new() }
}

impl Requirement {
    /// The logical name of a database; `default` without it.
    pub fn name(mut self, name: &'static str) -> Requirement {
        self.name = Some(name);
        self
    }

    /// Adds fields the administrator fills in.
    pub fn with_config(mut self, fields: impl IntoIterator<Item = ConfigField>) -> Requirement {
        self.config.extend(fields);
        self
    }

    /// Finishes the requirement; may be left out.
    pub fn build(self) -> Requirement {
        self
    }

    fn to_json(&self) -> Json {
        let mut members =
            vec![("kind".to_owned(), Json::from(self.kind)), ("description".to_owned(), self.description.into())];
        for (key, value) in [("name", self.name), ("target", self.target)] {
            if let Some(value) = value {
                members.push((key.to_owned(), value.into()));
            }
        }
        if !self.config.is_empty() {
            let fields = self.config.iter().map(|f| {
                crate::json!({
                    "type": "string",
                    "name": f.name,
                    "description": f.description,
                    "required": f.required,
                    "sensitive": f.sensitive,
                })
            });
            members.push(("config".to_owned(), Json::Array(fields.collect())));
        }
        Json::Object(members)
    }
}

/// Asks for a PostgreSQL database: `ctx.database`.
pub fn database(description: &'static str) -> Requirement {
    requirement("sql", description).name("default")
}

/// Asks for the key-value store: `ctx.kv_get` and its like.
pub fn kv(description: &'static str) -> Requirement {
    requirement("kv", description)
}

/// Asks for requests to other hosts: `ctx.http_get`, `ctx.http_post`, `ctx.http_request`.
pub fn http(description: &'static str) -> Requirement {
    requirement("network", description)
}

/// Asks for messages to users, chats and students: `ctx.notify_user` and its like.
pub fn notify_req(description: &'static str) -> Requirement {
    requirement("notify", description)
}

/// Asks for events: `ctx.publish_event`.
pub fn events_req(description: &'static str) -> Requirement {
    requirement("events", description)
}

/// Asks for calls of another plugin: `ctx.call_plugin`.
pub fn plugin_dep(target: &'static str, description: &'static str) -> Requirement {
    Requirement { target: Some(target), ..requirement("plugins:call", description) }
}

/// Asks for files: `ctx.file_meta`, `ctx.file_read`, `ctx.file_store` and their like.
pub fn file(description: &'static str) -> Requirement {
    requirement("file", description)
}

/// Who should call an HTTP trigger, as its author sees it. It counts when the administrator accepts it.
#[derive(Clone, Debug)]
pub struct Access {
    public: bool,
    users: bool,
    service_keys: bool,
    policy: &'static str,
    reason: &'static str,
}

impl Access {
    fn new(public: bool, users: bool, service_keys: bool, reason: &'static str) -> Access {
        Access { public, users, service_keys, policy: "", reason }
    }

    /// Callers need no login. The reason is shown to the administrator.
    pub fn public(reason: &'static str) -> Access {
        Access::new(true, false, false, reason)
    }

    /// Users may call.
    pub fn users(reason: &'static str) -> Access {
        Access::new(false, true, false, reason)
    }

    /// Programs with a service key may call.
    pub fn service_keys(reason: &'static str) -> Access {
        Access::new(false, false, true, reason)
    }

    /// Users and programs with a service key may call.
    pub fn users_and_service_keys(reason: &'static str) -> Access {
        Access::new(false, true, true, reason)
    }

    /// A CEL expression that must be true as well; not for a public trigger.
    pub fn with_policy(mut self, expression: &'static str) -> Access {
        self.policy = expression;
        self
    }

    fn to_json(&self) -> Json {
        crate::json!({
            "public": self.public,
            "users": self.users,
            "service_keys": self.service_keys,
            "policy": self.policy,
            "reason": self.reason,
        })
    }
}

/// An endpoint below `/api/triggers/http/<plugin id>`, or a command of messengers.
#[derive(Clone)]
pub struct Trigger {
    pub(crate) name: &'static str,
    pub(crate) handler: Handler,
    description: &'static str,
    /// None for a command.
    path: Option<&'static str>,
    methods: Vec<&'static str>,
    access: Option<Access>,
}

impl Trigger {
    /// An endpoint; for GET unless `methods` says otherwise.
    pub fn http(name: &'static str, path: &'static str, handler: Handler) -> Trigger {
        Trigger { name, handler, description: "", path: Some(path), methods: Vec::new(), access: None }
    }

    /// A command of messengers: `/name`.
    pub fn messenger(name: &'static str, handler: Handler) -> Trigger {
        Trigger { name, handler, description: "", path: None, methods: Vec::new(), access: None }
    }

    pub fn methods(mut self, methods: impl IntoIterator<Item = &'static str>) -> Trigger {
        self.methods.extend(methods);
        self
    }

    pub fn description(mut self, description: &'static str) -> Trigger {
        self.description = description;
        self
    }

    pub fn access(mut self, access: Access) -> Trigger {
        self.access = Some(access);
        self
    }

    fn to_json(&self) -> Json {
        let mut members = vec![("name".to_owned(), Json::from(self.name))];
        let mut add = |key: &str, value: Json| members.push((key.to_owned(), value));
        add("type", if self.path.is_some() { "TriggerHTTP" } else { "TriggerMessenger" }.into());
        add("description", self.description.into());
        if let Some(path) = self.path {
            let methods = if self.methods.is_empty() { vec!["GET"] } else { self.methods.clone() };
            add("path", path.into());
            add("methods", methods.into());
        } else if !self.methods.is_empty() {
            add("methods", self.methods.clone().into());
        }
        // The host warns of what a command has no use for.
        if let Some(access) = &self.access {
            add("access", access.to_json());
        }
        Json::Object(members)
    }
}

/// What a plugin declares about itself.
#[derive(Clone)]
pub struct Plugin {
    id: &'static str,
    name: &'static str,
    version: &'static str,
    requirements: Vec<Requirement>,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) functions: Vec<(&'static str, Handler)>,
}

impl Plugin {
    pub fn new(id: &'static str, name: &'static str, version: &'static str) -> Plugin {
        Plugin { id, name, version, requirements: Vec::new(), triggers: Vec::new(), functions: Vec::new() }
    }

    pub fn require(mut self, requirement: Requirement) -> Plugin {
        self.requirements.push(requirement);
        self
    }

    pub fn trigger(mut self, trigger: Trigger) -> Plugin {
        self.triggers.push(trigger);
        self
    }

    /// A function that other plugins may call which require this one ([`plugin_dep`]).
    pub fn function(mut self, name: &'static str, handler: Handler) -> Plugin {
        self.functions.push((name, handler));
        self
    }

    pub(crate) fn to_json(&self) -> String {
        let requirements: Vec<Json> = self.requirements.iter().map(Requirement::to_json).collect();
        let triggers: Vec<Json> = self.triggers.iter().map(Trigger::to_json).collect();
        crate::json!({
            "abi": PROTOCOL,
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "requirements": requirements,
            "triggers": triggers,
        })
        .to_string()
    }
}
