import t from 'tap';
import { guessType } from '../../admin/src/university/guess-type.ts';
import { ENTITIES } from '../../src/university/entities.ts';

const types = ENTITIES.map(({ fields, path, type }) => ({
  type,
  path,
  fields: [
    { name: 'external_id', required: true },
    ...Object.entries(fields).map(([name, { check }]) => ({ name, required: !check.safeParse(undefined).success })),
  ],
}));
const guess = (name: string, ...columns: string[]): string | undefined =>
  guessType({ name, columns }, types, type => (type === 'group' ? 'Группы' : type))?.type;

t.test('a file is taken for the type that its name says', async t => {
  t.equal(guess('persons.csv'), 'person');
  t.equal(guess('03 Student_Positions.2026.json'), 'student_position');
  t.equal(guess('student-subgroups.csv'), 'student_subgroup', 'not for subgroups');
  t.equal(guess('Группы.csv'), 'group', 'as the pages call the type');
  t.equal(guess('группы 2026.csv', 'external_id', 'last_name'), 'group');
});

t.test('or else for the type that its columns fit', async t => {
  t.equal(guess('export.csv', 'external_id', 'last_name', 'first_name', 'email'), 'person');
  t.equal(guess('1.csv', 'external_id', 'person_external_id', 'group_external_id', 'funding_type'), 'student_position');
  t.equal(guess('2.csv', 'external_id', 'name', 'faculty_external_id'), 'department');
  t.equal(guess('3.csv', 'external_id', 'name'), undefined, 'several types have these columns');
  t.equal(guess('4.csv', 'a', 'b'), undefined);
});
