import { type Context, Database, definePlugin, HostError, TriggerHTTP } from '@plugin-host/sdk';

/**
 * Grades in a database of the university: queries, a transaction, and a function for other plugins. It expects
 * CREATE TABLE grades (student bigint, course text, grade int CHECK (grade BETWEEN 2 AND 5), PRIMARY KEY (student, course));
 */
definePlugin({
  ID: 'grades',
  Name: 'Grades',
  Version: '1.0.0',
  Requirements: [Database('Reads and writes the grades of students').Name('grades').Build()],
  Functions: { average },
  Triggers: [
    {
      Name: 'grades',
      Type: TriggerHTTP,
      Path: '/students/:id',
      Methods: ['GET', 'PUT'],
      Description: "Shows a student's grades, or takes several over at once",
      Handler: grades,
    },
  ],
});

type Grade = { course: string; grade: number };

function grades(ctx: Context): void {
  const { Method, Params } = ctx.HTTP;
  const student = /^\d{1,18}$/.test(Params.id ?? '') ? BigInt(Params.id ?? '') : 0n;
  if (student === 0n) return ctx.JSON(400, { error: "the student's id must be a number above 0" });
  try {
    if (Method === 'PUT') put(ctx, student);
    else show(ctx, student);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    ctx.JSON(statusOf(error), { error: error.message });
  }
}

/** The message begins with the SQLSTATE; class 23 is data that a constraint refuses. */
function statusOf({ code, message }: HostError): number {
  if (message.startsWith('23')) return 422;
  return code === 'unavailable' ? 503 : 500;
}

function show(ctx: Context, student: bigint): void {
  const statement = 'SELECT course, grade FROM grades WHERE student = $1 ORDER BY course';
  ctx.JSON(200, { student, grades: ctx.Database('grades').Query<Grade>(statement, [student], 100).All() });
}

/** The list in the body; empty when there is none. */
function sentGrades(ctx: Context): Partial<Grade>[] {
  try {
    const list = ctx.HTTP.JSON<Partial<Grade>[]>();
    return Array.isArray(list) ? list.map(Object) : [];
  } catch {
    return [];
  }
}

/** All of them or none. */
function put(ctx: Context, student: bigint): void {
  const given = sentGrades(ctx);
  if (given.length === 0) return ctx.JSON(400, { error: 'send [{"course": ..., "grade": 2 to 5}]' });
  ctx.Database('grades').Transaction(tx => {
    for (const { course = '', grade = 0 } of given)
      tx.Exec(
        'INSERT INTO grades VALUES ($1, $2, $3) ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade',
        [student, course, grade],
      );
  });
  ctx.JSON(200, { student, taken: given.length });
}

/** For other plugins: the average of a student, {"student": id} -> {"average": "4.50"} or null. */
function average(ctx: Context): void {
  // An id may have more digits than a number holds.
  const asked = JSON.parse(ctx.Call.Text, (_key, value, { source = '' }) =>
    typeof value === 'number' ? BigInt(source) : value,
  );
  const { student }: { student?: bigint } = Object(asked);
  const statement = 'SELECT round(avg(grade), 2) AS average FROM grades WHERE student = $1';
  ctx.Output(ctx.Database('grades').QueryRow(statement, [student ?? null]));
}
