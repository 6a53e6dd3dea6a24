import type { ListFlags } from '../remote/operator-commands.ts';
import type { RoleFlags, UserFlags } from '../remote/people-commands.ts';
import type { CommandFlags, PolicyTarget, TriggerFlags } from '../remote/trigger-commands.ts';
import { type Add, type Command, group, repeated } from './verbs.ts';

/** Verbs that set who may call what: triggers, commands, policies, users and their roles. */

const SWITCHED = 'on or off';

export function addTriggerVerbs(program: Command, add: Add): void {
  const load = () => import('../remote/trigger-commands.ts');
  const trigger = group(program, 'trigger', 'HTTP triggers of a plugin');
  add(
    trigger,
    'list <plugin>',
    'list triggers with their settings, and what the author suggests',
    async (r, [id = '']) => (await load()).listTriggers(r, id),
  );
  add<TriggerFlags>(trigger, 'set <plugin> <trigger>', 'change settings of a trigger', async (r, args, f) => {
    const [id = '', name = ''] = args;
    return (await load()).setTrigger(r, id, name, f);
  })
    .option('--enabled <switch>', SWITCHED)
    .option('--users <switch>', `whether users may call it: ${SWITCHED}`)
    .option('--service-keys <switch>', `whether service keys may call it: ${SWITCHED}`)
    .option('--policy <expression>', 'the policy; an empty one removes it')
    .option('--record <switch>', `whether executions are recorded: ${SWITCHED}`)
    .option('--suggested', 'what the author of the plugin suggests; other options count before it')
    .option('--accept-public', 'accept that the trigger becomes callable without a login');
  const command = group(program, 'command', 'commands of a plugin in messengers');
  add(command, 'list <plugin>', 'list commands with their settings', async (r, [id = '']) =>
    (await load()).listCommands(r, id),
  );
  add<CommandFlags>(command, 'set <plugin> <command>', 'change a setting of a command', async (r, args, f) => {
    const [id = '', name = ''] = args;
    return (await load()).setCommand(r, id, name, f);
  })
    .option('--enabled <switch>', SWITCHED)
    .option('--policy <expression>', 'the policy; an empty one removes it')
    .option('--record <switch>', `whether executions are recorded: ${SWITCHED}`)
    .option('--system-role <role>', 'the role of the system it asks for, or none')
    .option('--global-role <role>', 'a global role it asks for, or none; may be repeated', repeated, [])
    .option('--plugin-role <role>', 'the role of the plugin it asks for, or none');
}

/** Below `policy`, which has verbs that only read. */
export function addPolicyChanges(policy: Command, add: Add): void {
  const load = () => import('../remote/trigger-commands.ts');
  const target = (verb: Command): Command =>
    verb
      .option('--trigger <name>', 'of an HTTP trigger')
      .option('--command <name>', 'of a command')
      .option('--accept-public', 'accept that the trigger becomes callable without a login');
  target(
    add<PolicyTarget>(
      policy,
      'set <plugin> <expression>',
      'set the policy of a trigger or command',
      async (r, args, f) => {
        const [id = '', expression = ''] = args;
        return (await load()).setPolicy(r, id, expression, f);
      },
    ),
  );
  target(
    add<PolicyTarget>(policy, 'remove <plugin>', 'remove the policy of a trigger or command', async (r, [id = ''], f) =>
      (await load()).setPolicy(r, id, '', f),
    ),
  );
}

const withUserOptions = (verb: Command): Command =>
  verb
    .option('--name <name>', 'the name')
    .option('--external-id <id>', 'the id in the university’s data')
    .option('--account <id>', 'the account at the identity provider')
    .option('--locale <locale>', 'ru or en');

export function addPeopleVerbs(program: Command, add: Add, limit: readonly [string, string]): void {
  const load = () => import('../remote/people-commands.ts');
  const user = group(program, 'user', 'users, named by external id, whole name or user:ID');
  add<ListFlags & { search?: string }>(user, 'list', 'list users', async (r, _, f) => (await load()).listUsers(r, f))
    .option('--search <text>', 'part of the name or email, or a whole id')
    .option(...limit);
  add(user, 'show <user>', 'show a user with the roles', async (r, [text = '']) => (await load()).showUser(r, text));
  withUserOptions(add<UserFlags>(user, 'add', 'add a user', async (r, _, f) => (await load()).addUser(r, f)));
  withUserOptions(
    add<UserFlags>(user, 'set <user>', 'change a user', async (r, [text = ''], f) =>
      (await load()).changeUser(r, text, f),
    ),
  );
  const role = group(program, 'role', 'roles of users');
  add(role, 'list', 'list the roles of the database', async r => (await load()).listRoles(r));
  add<ListFlags>(role, 'users <role>', 'list who has a role of the database', async (r, [name = ''], f) =>
    (await load()).listRoleUsers(r, name, f),
  ).option(...limit);
  for (const [word, about, given] of [
    ['give', 'give a user a role', true],
    ['take', 'take a role from a user', false],
  ] as const)
    add<RoleFlags>(role, `${word} <user> <role>`, about, async (r, [text = '', name = ''], f) =>
      (await load()).changeRole(r, text, name, given, f),
    )
      .option('--kind <kind>', 'database (without it), system or global')
      .option('--plugin <id>', 'a role of this plugin');
}
