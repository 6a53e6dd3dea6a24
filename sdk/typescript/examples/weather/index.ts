import {
  ConfigFields,
  type Context,
  definePlugin,
  HostError,
  HTTP,
  type HTTPResponse,
  StringField,
  TriggerHTTP,
} from '@plugin-host/sdk';

/** Asks another host, with an address and a secret key from the configuration; other plugins may ask it, too. */
definePlugin({
  ID: 'weather',
  Name: 'Weather',
  Version: '1.0.0',
  Requirements: [
    HTTP('Asks the weather service for the weather of a place')
      .WithConfig(
        ConfigFields(
          StringField(
            'service',
            'Address of the service, like https://api.weather.example; name its host in network.hosts',
          ).Required(),
          StringField('key', 'Key of the service').Sensitive(),
        ),
      )
      .Build(),
  ],
  Functions: { temperature },
  Triggers: [
    {
      Name: 'weather',
      Type: TriggerHTTP,
      Path: '/places/:place',
      Methods: ['GET'],
      Description: 'Tells the weather of a place',
      Handler: weather,
    },
  ],
});

/** Why there is no temperature, with the status a caller gets. */
class NoWeather extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function request(ctx: Context, place: string): HTTPResponse {
  const key = ctx.Config('key');
  try {
    return ctx.HTTPRequest({
      URL: `${ctx.Config('service')}/current?place=${encodeURIComponent(place)}`,
      Headers: { accept: 'application/json', ...(key === null ? {} : { authorization: `Bearer ${key}` }) },
      TimeoutMs: 3000,
    });
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.LogError(`the weather service: ${error.message}`);
    throw new NoWeather(502, 'the weather service cannot be asked');
  }
}

/** What stands in an answer; undefined when it is not what the service promises. */
function temperatureIn(answer: HTTPResponse): number | undefined {
  try {
    return answer.JSON<{ temperature?: number }>().temperature;
  } catch {
    return undefined;
  }
}

/** @throws NoWeather */
function ask(ctx: Context, place: string): number {
  const answer = request(ctx, place);
  if (answer.Status === 404) throw new NoWeather(404, 'the place is not known');
  const found = answer.Status === 200 ? temperatureIn(answer) : undefined;
  if (found === undefined) throw new NoWeather(502, `the weather service answered ${answer.Status}`);
  return found;
}

function weather(ctx: Context): void {
  const { place = '' } = ctx.HTTP.Params;
  try {
    ctx.JSON(200, { place, temperature: ask(ctx, place) });
  } catch (error) {
    if (!(error instanceof NoWeather)) throw error;
    ctx.JSON(error.status, { error: error.message });
  }
}

/** For other plugins: {"place": name} -> {"temperature": number}. */
function temperature(ctx: Context): void {
  const { place = '' }: { place?: string } = Object(ctx.Call.Value);
  ctx.Output({ temperature: ask(ctx, place) });
}
