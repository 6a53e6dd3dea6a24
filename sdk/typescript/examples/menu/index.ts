import {
  ConfigFields,
  type Context,
  definePlugin,
  File,
  HostError,
  NewMessage,
  PluginDep,
  StringField,
  TriggerMessenger,
} from '@plugin-host/sdk';

/** A command of messengers: a reply with files, those that came with the command too, and a call of another plugin. */
definePlugin({
  ID: 'menu',
  Name: 'Canteen menu',
  Version: '1.0.0',
  Requirements: [
    File('Sends the menu as a file, and takes pictures of dishes')
      .WithConfig(
        ConfigFields(
          StringField('dishes', 'Dishes of today, separated by semicolons').Required(),
          StringField('place', 'Where the canteen is, as the plugin weather knows it'),
        ),
      )
      .Build(),
    PluginDep('weather', 'Tells whether it is warm enough to eat outside').Build(),
  ],
  Triggers: [
    { Name: 'menu', Type: TriggerMessenger, Description: 'Shows what the canteen offers today', Handler: menu },
  ],
});

const HOUR_MS = 3_600_000;

/** `/menu`: the dishes as text and as a file, and the temperature outside. */
function menu(ctx: Context): void {
  const dishes = (ctx.Config('dishes') ?? '').split(';').map(dish => dish.trim());
  const text = ['Today in the canteen:', ...dishes.map(dish => `- ${dish}`), ...outside(ctx)].join('\n');
  const list = ctx.FileStoreWithTTL('menu.txt', 'text/plain', 'document', `${dishes.join('\n')}\n`, HOUR_MS);
  const message = NewMessage(text).File(list, 'The menu');
  for (const picture of ctx.Files()) message.File(picture, 'Thank you for the picture');
  ctx.Reply(message);
}

/** A line with the temperature; none when the plugin weather cannot tell it. */
function outside(ctx: Context): string[] {
  const place = ctx.Config('place');
  if (place === null) return [];
  try {
    const { temperature }: { temperature?: number } = Object(ctx.CallPlugin('weather', 'temperature', { place }));
    return [`Outside: ${temperature} C`];
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.LogError(`weather: ${error.message}`);
    return [];
  }
}
