import { type Context, definePlugin, File, HostError, TriggerHTTP, Users } from 'plugin-host';

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

/** Gets `{"file_id": "..."}`, the id of a file that was uploaded through `/api/files/`. */
function count(ctx: Context): void {
  try {
    const file = ctx.FileMeta(ctx.HTTP.JSON<{ file_id: string }>().file_id);
    const lines = new TextDecoder().decode(ctx.FileReadAll(file.ID)).split('\n').length;
    ctx.JSON(200, { name: file.Name, lines });
  } catch (error) {
    if (!(error instanceof HostError) || error.code !== 'not_found') throw error;
    ctx.JSON(404, { error: 'there is no such file' });
  }
}
