# nlohmann/json: JSON read and written by the library's sources and by the programs; no public header includes it.
ebb_dependency(nlohmann_json 3.9 TARGET nlohmann_json::nlohmann_json DEBIAN nlohmann-json3-dev
               GIT https://github.com/nlohmann/json.git TAG v3.11.3
               OPTIONS JSON_BuildTests=OFF JSON_Install=OFF)
