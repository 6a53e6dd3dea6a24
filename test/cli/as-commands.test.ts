import t from 'tap';
import { asCommands } from '../../src/cli/remote/access-commands.ts';

/** What `policy explain` says to change is a command that does it (`src/api/plugins/access-api.ts` writes the calls). */
t.test('each call of the API that would change a decision is shown as a command', t => {
  const trigger = 'PUT /api/admin/plugins/hello/triggers/greet/settings';
  const command = 'PUT /api/admin/plugins/hello/commands/menu';
  const rows: Array<[said: string, shown: string]> = [
    ['POST /api/admin/plugins/hello/enable', 'plugin-host plugin enable hello'],
    [`${trigger} {"enabled": true}`, 'plugin-host trigger set hello greet --enabled on'],
    [`${trigger} {"allow_user_session": true}`, 'plugin-host trigger set hello greet --users on'],
    [
      `give the user what the policy asks (POST /api/admin/policies/try shows every part), or change it: ${trigger}`,
      'give the user what the policy asks, or change it: plugin-host policy set hello EXPRESSION --trigger greet',
    ],
    [`${command}/enabled {"enabled": true}`, 'plugin-host command set hello menu --enabled on'],
    [`or change it: ${command}/policy`, 'or change it: plugin-host policy set hello EXPRESSION --command menu'],
    [
      `PUT /api/admin/users/7/roles/system/student, or ask for no such role: ${command}/roles`,
      'plugin-host role give user:7 student --kind system, or ask for no such role: plugin-host command set hello menu --help',
    ],
    [
      `PUT /api/admin/users/7/roles/plugin/hello/editor, or ask for no such role: ${command}/roles`,
      'plugin-host role give user:7 editor --plugin hello, or ask for no such role: plugin-host command set hello menu --help',
    ],
    ['bring the graph store back', 'bring the graph store back'],
  ];
  for (const [said, shown] of rows) t.equal(asCommands(said), shown);
  t.end();
});
