//! Asks another host, with an address and a secret key from the configuration; other plugins may ask it, too.

use std::fmt;
use std::time::Duration;

use plugin_host::*;

plugin!(declare);

fn declare() -> Plugin {
    let fields = [
        string("service", "Address of the service, like https://api.weather.example; name its host in network.hosts")
            .required(),
        string("key", "Key of the service").sensitive(),
    ];
    Plugin::new("weather", "Weather", "1.0.0")
        .require(http("Asks the weather service for the weather of a place").with_config(fields).build())
        .function("temperature", temperature)
        .trigger(
            Trigger::http("weather", "/places/:place", weather)
                .methods(["GET"])
                .description("Tells the weather of a place"),
        )
}

/// Why there is no temperature, with the status a caller gets.
#[derive(Debug)]
struct NoWeather {
    status: u16,
    reason: String,
}

impl fmt::Display for NoWeather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NoWeather {}

fn no_weather<T>(status: u16, reason: impl Into<String>) -> std::result::Result<T, NoWeather> {
    Err(NoWeather { status, reason: reason.into() })
}

fn ask(ctx: &Context, place: &str) -> std::result::Result<Json, NoWeather> {
    let url = format!("{}/current?place={}", ctx.config("service").unwrap_or_default(), url_encode(place));
    let mut order = HttpOrder::new("GET", &url).header("accept", "application/json").timeout(Duration::from_secs(3));
    if let Some(key) = ctx.config("key") {
        order = order.header("authorization", &format!("Bearer {key}"));
    }
    let answer = match ctx.http_request(order) {
        Ok(answer) => answer,
        Err(error) => {
            ctx.log_error(&format!("the weather service: {error}"));
            return no_weather(502, "the weather service cannot be asked");
        }
    };
    if answer.status == 404 {
        return no_weather(404, "the place is not known");
    }
    match answer.json() {
        Ok(found) if answer.status == 200 && found["temperature"].as_f64().is_some() => {
            Ok(found["temperature"].clone())
        }
        _ => no_weather(502, format!("the weather service answered {}", answer.status)),
    }
}

fn weather(ctx: &Context) -> Result {
    let place = ctx.http().param("place");
    match ask(ctx, place) {
        Ok(temperature) => ctx.json(200, json!({ "place": place, "temperature": temperature })),
        Err(refusal) => ctx.json(refusal.status, json!({ "error": refusal.reason })),
    }
}

/// For other plugins: {"place": name} -> {"temperature": number}.
fn temperature(ctx: &Context) -> Result {
    let asked = ctx.call().value()?;
    let temperature = ask(ctx, asked["place"].as_str().unwrap_or(""))?;
    ctx.output(json!({ "temperature": temperature }))
}
