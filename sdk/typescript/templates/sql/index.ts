import { type Context, Database, definePlugin, TriggerHTTP, Users } from '@plugin-host/sdk';

definePlugin({
  ID: 'template-plugin',
  Name: 'Template Plugin',
  Version: '0.1.0',
  Requirements: [Database('Reads and keeps notes').Name('notes').Build()],
  Triggers: [
    {
      Name: 'notes',
      Type: TriggerHTTP,
      Path: '/notes',
      Methods: ['GET', 'POST'],
      Description: 'Notes of the user',
      Access: Users('Each user has notes'),
      Handler: notes,
    },
  ],
});

function notes(ctx: Context): void {
  const { Auth, Method } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const db = ctx.Database('notes');
  db.Exec('CREATE TABLE IF NOT EXISTS notes (user_id bigint NOT NULL, text text NOT NULL)');
  if (Method === 'POST') db.Exec('INSERT INTO notes VALUES ($1, $2)', [Auth.UserID, ctx.HTTP.Body]);
  ctx.JSON(200, { notes: db.Query('SELECT text FROM notes WHERE user_id = $1', [Auth.UserID]).All() });
}
