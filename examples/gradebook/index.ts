import {
  ConfigFields,
  type Connection,
  type Context,
  Database,
  definePlugin,
  HostError,
  StringField,
  TriggerHTTP,
  Users,
} from '@plugin-host/sdk';

/** Grades in a database: teachers enter them, each student sees only their own. It makes its table itself. */
definePlugin({
  ID: 'gradebook',
  Name: 'Gradebook',
  Version: '1.0.0',
  Requirements: [
    Database('Keeps the grades')
      .Name('grades')
      .WithConfig(
        ConfigFields(
          StringField(
            'courses',
            'Courses with the user ids of their teachers, like algebra: 7 12, physics: 9',
          ).Required(),
        ),
      )
      .Build(),
  ],
  Triggers: [
    {
      Name: 'mine',
      Type: TriggerHTTP,
      Path: '/mine',
      Methods: ['GET'],
      Description: 'Shows the grades of the caller',
      Access: Users('Each student sees only their own grades'),
      Handler: ctx => answered(ctx, mine),
    },
    {
      Name: 'course',
      Type: TriggerHTTP,
      Path: '/courses/:course',
      Methods: ['GET', 'PUT'],
      Description: 'Shows the grades of a course, or enters several at once',
      Access: Users('Teachers enter the grades of their courses').Policy('has_role("teacher")'),
      Handler: ofTeacher,
    },
  ],
});

const TABLE = `CREATE TABLE IF NOT EXISTS gradebook_grades (
  student bigint, course text, grade int NOT NULL CHECK (grade BETWEEN 2 AND 5), entered_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (student, course))`;
/** SQLSTATE of a statement about a table that is not there. */
const NO_TABLE = '42P01';
/** SQLSTATE of a row that a CHECK refuses. */
const WRONG_GRADE = '23514';
const GRADES_MAX = 500;
const GRADE_SIZE_MAX = 1000;

type Grade = { student: number | bigint; grade: number };

/** Which user ids teach a course, as the configuration says; null for a course that it does not name. */
function teachersOf(ctx: Context, course: string): string[] | null {
  for (const entry of (ctx.Config('courses') ?? '').split(',')) {
    const [name = '', ids = ''] = entry.split(':');
    if (name.trim() === course) return ids.trim().split(/\s+/);
  }
  return null;
}

/** A teacher sees and grades only courses of their own. */
function ofTeacher(ctx: Context): void {
  const { Auth, Method, Params } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const { course: name = '' } = Params;
  const teachers = teachersOf(ctx, name);
  if (teachers === null) return ctx.JSON(404, { error: `there is no course ${name}` });
  if (!teachers.includes(String(Auth.UserID))) return ctx.JSON(403, { error: `you do not teach ${name}` });
  if (Method === 'PUT') enter(ctx);
  else answered(ctx, course);
}

/** Runs a handler; before the first grade there is no table, and a refusal of the database is no failure of the plugin. */
function answered(ctx: Context, handle: (ctx: Context, db: Connection) => void): void {
  try {
    const db = ctx.Database('grades');
    try {
      handle(ctx, db);
    } catch (error) {
      if (!(error instanceof HostError) || !error.message.startsWith(NO_TABLE)) throw error;
      makeTable(db);
      handle(ctx, db);
    }
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    if (error.message.startsWith(WRONG_GRADE)) return ctx.JSON(422, { error: 'a grade is 2, 3, 4 or 5' });
    ctx.LogError(error.message);
    ctx.JSON(error.code === 'unavailable' ? 503 : 500, {
      error: 'the database of grades does not answer as it should',
    });
  }
}

/** Two first requests at once both make it: PostgreSQL refuses one of them in words of its own catalogue. */
function makeTable(db: Connection): void {
  try {
    db.Exec(TABLE);
  } catch (error) {
    if (!(error instanceof HostError) || !/^(23505|42P07)/.test(error.message)) throw error;
  }
}

function mine(ctx: Context, db: Connection): void {
  const { Auth } = ctx.HTTP;
  if (Auth?.Kind !== 'user') return ctx.JSON(401, { error: 'log in first' });
  const statement = 'SELECT course, grade FROM gradebook_grades WHERE student = $1 ORDER BY course';
  ctx.JSON(200, { grades: db.Query(statement, [Auth.UserID]).All() });
}

function course(ctx: Context, db: Connection): void {
  const { course = '' } = ctx.HTTP.Params;
  const statement = 'SELECT student, grade FROM gradebook_grades WHERE course = $1 ORDER BY student';
  const grades = db.Query<Grade>(statement, [course]).All();
  const sum = grades.reduce((total, { grade }) => total + grade, 0);
  ctx.JSON(200, {
    course,
    grades,
    average: grades.length === 0 ? null : Math.round((sum / grades.length) * 100) / 100,
  });
}

/** The grades in the body; null when there is anything else. */
function sentGrades(ctx: Context): Grade[] | null {
  const isGrade = (value: unknown): value is Grade => {
    const { grade, student }: Partial<Record<keyof Grade, unknown>> = Object(value);
    return (
      Number.isSafeInteger(student) &&
      Number(student) > 0 &&
      Number.isInteger(grade) &&
      Math.abs(Number(grade)) < GRADE_SIZE_MAX
    );
  };
  try {
    const list = ctx.HTTP.JSON<unknown>();
    return Array.isArray(list) && list.length > 0 && list.length <= GRADES_MAX && list.every(isGrade) ? list : null;
  } catch {
    return null;
  }
}

function enter(ctx: Context): void {
  const grades = sentGrades(ctx);
  if (grades === null)
    return ctx.JSON(400, { error: `send 1 to ${GRADES_MAX} grades like [{"student": 7, "grade": 5}]` });
  answered(ctx, (_, db) => store(ctx, db, grades));
}

/** All of them or none. */
function store(ctx: Context, db: Connection, grades: readonly Grade[]): void {
  const { course = '' } = ctx.HTTP.Params;
  db.Transaction(tx => {
    for (const { grade, student } of grades)
      tx.Exec(
        `INSERT INTO gradebook_grades (student, course, grade) VALUES ($1, $2, $3)
         ON CONFLICT (student, course) DO UPDATE SET grade = excluded.grade, entered_at = now()`,
        [student, course, grade],
      );
  });
  ctx.JSON(200, { course, entered: grades.length });
}
