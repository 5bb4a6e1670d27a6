// The subcommands of `lockstep`. Each Add... declares its flags and, when the command line names
// it, runs it and sets *exit_code: 0, 1 for a failure, 2 for a wrong command line.
#pragma once

namespace CLI {
class App;
}

namespace lockstep {

void AddServeCommand(CLI::App* app, int* exit_code);
void AddGenerateCommand(CLI::App* app, int* exit_code);
void AddChatCommand(CLI::App* app, int* exit_code);
void AddScoreCommand(CLI::App* app, int* exit_code);
void AddBenchCommand(CLI::App* app, int* exit_code);
void AddFitCommand(CLI::App* app, int* exit_code);
void AddVerifyCommand(CLI::App* app, int* exit_code);
void AddInspectCommand(CLI::App* app, int* exit_code);

}  // namespace lockstep
