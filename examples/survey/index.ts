import { ConfigFields, type Context, definePlugin, KV, StringField, TriggerHTTP, Users } from '@plugin-host/sdk';

/** A survey on a page in the browser: each user answers once, and no answer says whose it is. */
definePlugin({
  ID: 'survey',
  Name: 'Survey',
  Version: '1.0.0',
  Requirements: [
    KV('Keeps the answers, and apart from them who has answered')
      .WithConfig(
        ConfigFields(
          StringField('title', 'What the survey is about').Required(),
          StringField(
            'questions',
            'Questions, with semicolons between them; choices behind a colon: How was it?: good, fair; What else?',
          ).Required(),
        ),
      )
      .Build(),
  ],
  Triggers: [
    {
      Name: 'questions',
      Type: TriggerHTTP,
      Path: '/questions',
      Methods: ['GET'],
      Description: 'Shows the questions, and whether the caller has answered',
      Access: Users('Users see the questions'),
      Handler: show,
    },
    {
      Name: 'answer',
      Type: TriggerHTTP,
      Path: '/answers',
      Methods: ['POST'],
      Description: 'Takes the answers of a user, once',
      Access: Users('Users answer'),
      Handler: answer,
    },
    {
      Name: 'export',
      Type: TriggerHTTP,
      Path: '/answers.csv',
      Methods: ['GET'],
      Description: 'Gives all answers as a table',
      Access: Users('Staff read the answers').Policy('has_any_role("staff", "dean")'),
      Handler: table,
    },
  ],
});

type Question = { text: string; choices: string[] };

const ANSWERED = 'answered:';
const ANSWER = 'answer:';
const TEXT_CHARS = 2000;
const ANSWERS_MAX = 10_000;

/** The questions as the administrator has written them. */
const questionsOf = (ctx: Context): Question[] =>
  (ctx.Config('questions') ?? '')
    .split(/[;\n]/)
    .map(line => line.trim())
    .filter(line => line !== '')
    .map(line => {
      const [text = '', choices = ''] = line.split(/:(?=[^:]*$)/);
      return {
        text: text.trim(),
        choices: choices
          .split(',')
          .map(c => c.trim())
          .filter(c => c !== ''),
      };
    });

function userOf(ctx: Context): bigint | null {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind === 'user') return Auth.UserID;
  ctx.JSON(401, { error: 'log in first' });
  return null;
}

function show(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const answered = ctx.KVGet(ANSWERED + user) !== null;
  ctx.JSON(200, { title: ctx.Config('title'), questions: questionsOf(ctx), answered });
}

/** The answers in the body, one for each question; a text says what is wrong. */
function sentAnswers(ctx: Context, questions: readonly Question[]): string[] | string {
  let given: unknown;
  try {
    given = ctx.HTTP.JSON<{ answers?: unknown }>().answers;
  } catch {
    given = null;
  }
  if (!Array.isArray(given) || given.length !== questions.length)
    return `send {"answers": [...]} with ${questions.length} texts`;
  for (const [k, { choices, text }] of questions.entries()) {
    const value: unknown = given[k];
    if (typeof value !== 'string' || value.length > TEXT_CHARS)
      return `${text}: send a text of at most ${TEXT_CHARS} characters`;
    if (choices.length > 0 && !choices.includes(value)) return `${text}: choose one of ${choices.join(', ')}`;
  }
  return given;
}

/** Who has answered and what was answered are two keys, and the second one is random: the plugin stores no link. */
function answer(ctx: Context): void {
  const user = userOf(ctx);
  if (user === null) return;
  const answers = sentAnswers(ctx, questionsOf(ctx));
  if (typeof answers === 'string') return ctx.JSON(400, { error: answers });
  if (!ctx.KVSetIfAbsent(ANSWERED + user, '').written) return ctx.JSON(409, { error: 'you have answered already' });
  try {
    ctx.KVSet(ANSWER + crypto.randomUUID(), JSON.stringify(answers));
  } catch (error) {
    // Nothing was kept: the user may answer again.
    ctx.KVDelete(ANSWERED + user);
    throw error;
  }
  ctx.JSON(201, { thanks: true });
}

/** RFC 4180; a cell that a spreadsheet would run as a formula gets a quotation mark in front. */
function cell(text: string): string {
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

const line = (cells: readonly string[]): string => `${cells.map(cell).join(',')}\r\n`;

function table(ctx: Context): void {
  const lines = [line(questionsOf(ctx).map(q => q.text))];
  for (let after = ''; lines.length <= ANSWERS_MAX + 1; ) {
    const { keys, next } = ctx.KVList(ANSWER, after, 20);
    for (const value of ctx.KVGetMany(keys)) if (value !== null) lines.push(line(JSON.parse(value)));
    if (next === null) break;
    after = next;
  }
  if (lines.length > ANSWERS_MAX + 1) return ctx.JSON(413, { error: `there are more than ${ANSWERS_MAX} answers` });
  ctx.SetHTTPResponse(
    200,
    { 'Content-Type': 'text/csv; charset=utf-8', 'Content-Disposition': 'attachment; filename="answers.csv"' },
    // The mark tells spreadsheets that it is UTF-8.
    `\uFEFF${lines.join('')}`,
  );
}
