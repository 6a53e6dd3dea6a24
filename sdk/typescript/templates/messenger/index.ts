import { type Context, definePlugin, File, NewMessage, TriggerMessenger } from '@plugin-host/sdk';

definePlugin({
  ID: 'template-plugin',
  Name: 'Template Plugin',
  Version: '0.1.0',
  Requirements: [File('Sends the menu as a file').Build()],
  Triggers: [{ Name: 'menu', Type: TriggerMessenger, Description: 'The menu of a day', Handler: menu }],
});

function menu(ctx: Context): void {
  const day = ctx.Message.Args[0] ?? 'today';
  const file = ctx.FileStore('menu.txt', 'text/plain', 'document', `Menu of ${day}: soup`);
  ctx.Reply(NewMessage(`Here is the menu of ${day}.`).File(file, 'Menu'));
}
