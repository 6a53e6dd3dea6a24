import { type Context, definePlugin, File, HostError, TriggerHTTP, Users } from '@plugin-host/sdk';

definePlugin({
  ID: 'template-plugin',
  Name: 'Template Plugin',
  Version: '0.1.0',
  Requirements: [File('Reads the files that are handed in').Build()],
  Triggers: [
    {
      Name: 'count',
      Type: TriggerHTTP,
      Path: '/lines',
      Methods: ['POST'],
      Description: 'Counts the lines of an uploaded file',
      Access: Users('Users may have their files counted'),
      Handler: count,
    },
  ],
});

/** The id in the body; null when there is none. */
function sentId(ctx: Context): string | null {
  try {
    const { file_id } = ctx.HTTP.JSON<{ file_id?: unknown }>();
    return typeof file_id === 'string' ? file_id : null;
  } catch {
    return null;
  }
}

/** Gets `{"file_id": "..."}`, the id of a file that was uploaded through `/api/files/`. */
function count(ctx: Context): void {
  const id = sentId(ctx);
  if (id === null) return ctx.JSON(400, { error: 'send {"file_id": "..."}' });
  try {
    const file = ctx.FileMeta(id);
    const lines = new TextDecoder().decode(ctx.FileReadAll(file.ID)).split('\n').length;
    ctx.JSON(200, { name: file.Name, lines });
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== 'not_found') throw error;
    ctx.JSON(404, { error: 'there is no such file' });
  }
}
